/* client.h - one program that looks at a robot by Foxglove's protocol: what it subscribed to, what
 * it sends, and what is on its way to it. It is never waited for: what it does not take in time is
 * left out, and it is told how much that was. Its WebSocket is libwebsockets'. */
#ifndef TEC_TOOLS_FOXGLOVE_CLIENT_H
#define TEC_TOOLS_FOXGLOVE_CLIENT_H

#include "tools/foxglove/channels.h"

struct lws; /* libwebsockets' connection */

enum {
    TEC_FOXGLOVE_OUT = 1 << 18,      /* bytes of messages that wait for a client */
    TEC_FOXGLOVE_MESSAGE = 64 << 10, /* bytes of a message of its own */
    TEC_FOXGLOVE_SUBSCRIPTIONS = 256 /* of a message */
};

struct tec_foxglove_client {
    struct lws *wsi;  /* NULL: there is no client here */
    uint8_t *message; /* [TEC_FOXGLOVE_MESSAGE] that has come, as far as it is there */
    size_t message_n;
    bool is_text;
    uint8_t *out;         /* [TEC_FOXGLOVE_OUT] messages from out_at to out_n are on their way */
    size_t out_at, out_n; /* of out */
    int64_t lost;         /* messages that found no room, and that it has not been told of */
    int64_t heard_ns;     /* when it has come, or sent a message last */
    int64_t second_ns;    /* a second began then, in which it has sent: */
    int sent;             /* messages */
    size_t sent_bytes;
    int code; /* not 0: it is told what is on its way, and then closed with this code */
    bool subscribed[TEC_FOXGLOVE_CHANNELS];
    uint32_t ids[TEC_FOXGLOVE_CHANNELS]; /* by which it knows its subscriptions */
};

/* Take a connection behind its handshake, and tell it who this is. False without memory. */
bool tec_foxglove_client_open(struct tec_foxglove_client *c, struct lws *wsi,
                              const struct tec_engine *engine, const json_t *info,
                              struct tec_heap *heap);
/* The connection has ended, or does so elsewhere. */
void tec_foxglove_client_close(struct tec_foxglove_client *c, struct tec_heap *heap);

/* A part of a message has come: when it is whole, do what it says. */
void tec_foxglove_client_receive(struct tec_foxglove_client *c, const struct tec_engine *engine,
                                 const void *data, size_t n, int64_t now_ns);

/* Send what is on its way, as far as the socket takes it. -1: the connection is to be closed. */
int tec_foxglove_client_send(struct tec_foxglove_client *c);

/* A message of a channel, if it has subscribed to it. time_ns: of the wall's clock. */
void tec_foxglove_client_tell(struct tec_foxglove_client *c, int channel, int64_t time_ns,
                              const char *text, size_t n);

/* Close it with this code of RFC 6455 once what is on its way has left, or after two seconds. */
void tec_foxglove_client_end(struct tec_foxglove_client *c, int code);

#endif
