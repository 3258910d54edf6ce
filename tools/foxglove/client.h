/* client.h - one program that looks at a robot by Foxglove's protocol: what it subscribed to, what
 * it sends, and what is on its way to it. It is never waited for: what it does not take in time is
 * left out, and it is told how much that was. */
#ifndef TEC_TOOLS_FOXGLOVE_CLIENT_H
#define TEC_TOOLS_FOXGLOVE_CLIENT_H

#include "tools/foxglove/channels.h"
#include "tools/foxglove/websocket.h"

struct tec_foxglove_client {
    int fd; /* does not block; -1: there is no client here */
    struct tec_websocket in;
    uint8_t *out;         /* [TEC_FOXGLOVE_OUT] bytes from out_at to out_n are on their way */
    size_t out_at, out_n; /* of out */
    int64_t moved_ns;     /* when it last took something, or nothing was on its way */
    int64_t lost;         /* messages that found no room, and that it has not been told of */
    int64_t second_ns;    /* a second began then, in which it has sent: */
    int sent;             /* messages */
    size_t sent_bytes;
    bool ends; /* it is told why, and then closed */
    bool subscribed[TEC_FOXGLOVE_CHANNELS];
    uint32_t ids[TEC_FOXGLOVE_CHANNELS]; /* by which it knows its subscriptions */
};

enum { TEC_FOXGLOVE_OUT = 1 << 18, TEC_FOXGLOVE_SUBSCRIPTIONS = 256 /* of a message */ };

/* Take a connection behind its handshake, and tell it who this is. False without memory: the
 * connection is the caller's still. */
bool tec_foxglove_client_open(struct tec_foxglove_client *c, int fd, int64_t now_ns,
                              const struct tec_engine *engine, const json_t *info,
                              struct tec_heap *heap);
void tec_foxglove_client_close(struct tec_foxglove_client *c, struct tec_heap *heap);

/* Take what has come, and do what it says. False: the connection has ended. */
bool tec_foxglove_client_receive(struct tec_foxglove_client *c, const struct tec_engine *engine,
                                 int64_t now_ns);

/* Send what is on its way, as far as there is room. False: the connection has ended, or nothing of
 * it was taken for too long. */
bool tec_foxglove_client_send(struct tec_foxglove_client *c, int64_t now_ns);

/* A message of a channel, if it has subscribed to it. time_ns: of the wall's clock. */
void tec_foxglove_client_tell(struct tec_foxglove_client *c, int channel, int64_t time_ns,
                              const char *text, size_t n);

/* Close it with this code once what is on its way has left. */
void tec_foxglove_client_end(struct tec_foxglove_client *c, enum tec_websocket_code code);

#endif
