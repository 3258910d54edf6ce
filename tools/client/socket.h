/* socket.h - a WebSocket client that sends one message and waits for one (RFC 6455). It blocks; the
 * server is trusted as little as any input. */
#ifndef TEC_TOOLS_CLIENT_SOCKET_H
#define TEC_TOOLS_CLIENT_SOCKET_H

#include "base/error.h"
#include "tools/record/buffer.h"

struct tec_client_socket {
    int fd;           /* -1: none */
    int asker;        /* a socket whose end is the end of waiting, however long that is; -1: 60 s */
    int wait_ms;      /* with an asker: longest time from a request, or from the beginning of the
                       * handshake, until all that is received for it; 0: no bound */
    int64_t until_ns; /* the end of that time; 0: none */
    size_t most;      /* bytes of a message that is received */
    char url[300];    /* for messages */
    size_t n, at;     /* of what was received behind the handshake */
    uint8_t held[4096];
};

/* TEC_INVALID for a URL of another kind than below. */
enum tec_status tec_client_check_url(const char *url, struct tec_error *err);

/* "ws://HOST:PORT/PATH" (8000 and "/" unless given); `key` NULL or what --key asks for; `asker` as
 * above. TEC_INVALID for another kind of URL, TEC_IO where nobody answers or the server refuses,
 * with its first line. */
enum tec_status tec_client_connect(struct tec_client_socket *s, const char *url, const char *key,
                                   int asker, struct tec_error *err);
/* The same over `fd`, a connected socket, which is taken: the URL is for messages. */
enum tec_status tec_client_connect_over(struct tec_client_socket *s, int fd, const char *url,
                                        const char *key, int asker, struct tec_error *err);
/* The same as the first for a socket whose asker, wait_ms and most are set. */
enum tec_status tec_client_connect_again(struct tec_client_socket *s, const char *url,
                                         const char *key, struct tec_error *err);
void tec_client_close(struct tec_client_socket *s);

/* Whether the server has closed it; to be asked between a reply and the next request. */
bool tec_client_ended(const struct tec_client_socket *s);

/* Send one binary message. */
enum tec_status tec_client_send(struct tec_client_socket *s, const void *data, size_t n,
                                struct tec_error *err);

/* Receive one message of at most 64 MiB into `out`, which is emptied first; pings are answered.
 * *refused: it is a text, in which servers state their errors. TEC_TIME after 60 s, or, with an
 * asker, when that has left or wait_ms have passed since the request, or since the handshake began:
 * messages that are received meanwhile do not prolong it. */
enum tec_status tec_client_receive(struct tec_client_socket *s, struct tec_buffer *out,
                                   bool *refused, struct tec_error *err);

/* Bytes that have been received and not been read: poll does not know of them. */
bool tec_client_pending(const struct tec_client_socket *s);

/* Read one frame between requests: a ping is answered, data are left in `out`. TEC_IO: the server
 * closes the connection. */
enum tec_status tec_client_idle(struct tec_client_socket *s, struct tec_buffer *out,
                                struct tec_error *err);

#endif
