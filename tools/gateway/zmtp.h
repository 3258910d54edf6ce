/* zmtp.h - the server's side of a connection of ZeroMQ's, as much as a REQ socket needs: ZMTP 3.0
 * (rfc.zeromq.org/spec/23) without security, requests of one message, pings of 3.1. libzmq itself
 * keeps the parts of a message that never ends in memory without a bound, and does not count its
 * connections.
 *
 * Whatever a client sends that is something else ends its connection, as any false does. */
#ifndef TEC_TOOLS_GATEWAY_ZMTP_H
#define TEC_TOOLS_GATEWAY_ZMTP_H

#include "tools/record/buffer.h"

enum { TEC_ZMTP_ID = 32 /* bytes of a request's number, where a socket counts them */ };

/* A connection; one thread uses it. */
struct tec_zmtp {
    int fd;           /* borrowed; it does not block */
    int64_t until_ns; /* when waiting for its client ends; 0: never */
    struct tec_zmtp_head {
        uint8_t flags;
        uint64_t n;
    } head; /* of a request's first frame */
    uint8_t
        id[TEC_ZMTP_ID]; /* what came before a request's empty frame; it goes before the reply's */
    size_t id_n;
    size_t n, at; /* of what was received and not read */
    uint8_t held[4096];
};

/* Shake hands with a REQ or DEALER socket within `patience_ns`. */
bool tec_zmtp_open(struct tec_zmtp *z, int fd, int64_t patience_ns);

/* Wait until a request begins; whether the server is alive is answered meanwhile. */
bool tec_zmtp_wait(struct tec_zmtp *z, int64_t patience_ns);

/* Receive that request, all of it within `patience_ns`. `out` is emptied first; its memory grows
 * with what arrives, up to `most` bytes. NULL: the message is read and forgotten. */
bool tec_zmtp_receive(struct tec_zmtp *z, struct tec_buffer *out, size_t most, int64_t patience_ns);

/* Send the reply. */
bool tec_zmtp_send(struct tec_zmtp *z, const void *data, size_t n, int64_t patience_ns);

#endif
