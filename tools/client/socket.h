/* socket.h - a WebSocket client that sends one message and waits for one (RFC 6455). It blocks; the
 * server is trusted as little as any input. */
#ifndef TEC_TOOLS_CLIENT_SOCKET_H
#define TEC_TOOLS_CLIENT_SOCKET_H

#include "base/error.h"
#include "tools/record/buffer.h"

struct tec_client_socket {
    int fd;        /* -1: none */
    int asker;     /* a socket whose end is the end of waiting, however long that is; -1: 60 s */
    char url[300]; /* for messages */
    size_t n, at;  /* of what was received behind the handshake */
    uint8_t held[4096];
};

/* "ws://HOST:PORT" (8000 unless given); `key` NULL or what --key asks for; `asker` as above.
 * TEC_INVALID for another kind of URL, TEC_IO where nobody answers or the server refuses, with its
 * first line. */
enum tec_status tec_client_connect(struct tec_client_socket *s, const char *url, const char *key,
                                   int asker, struct tec_error *err);
void tec_client_close(struct tec_client_socket *s);

/* Whether the server has closed it; to be asked between a reply and the next request. */
bool tec_client_ended(const struct tec_client_socket *s);

/* Send one binary message. */
enum tec_status tec_client_send(struct tec_client_socket *s, const void *data, size_t n,
                                struct tec_error *err);

/* Receive one message of at most 64 MiB into `out`, which is emptied first; pings are answered.
 * *refused: it is a text, in which servers state their errors. TEC_TIME after 60 s, or when the
 * asker has left. */
enum tec_status tec_client_receive(struct tec_client_socket *s, struct tec_buffer *out,
                                   bool *refused, struct tec_error *err);

#endif
