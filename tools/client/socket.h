/* socket.h - a WebSocket client that sends one message and waits for one (RFC 6455). It blocks; the
 * server is trusted as little as any input. */
#ifndef TEC_TOOLS_CLIENT_SOCKET_H
#define TEC_TOOLS_CLIENT_SOCKET_H

#include "base/error.h"
#include "tools/client/secure.h"
#include "tools/record/buffer.h"

enum { TEC_CLIENT_PATIENCE_S = 60 };

struct tec_client_socket {
    int fd;           /* -1: none */
    int asker;        /* a socket whose end is the end of waiting, however long that is; -1: none */
    int wait_ms;      /* longest time from a request, or from the beginning of the handshake, until
                       * all that is received for it; 0: no bound, or without an asker 60 s for
                       * each read */
    int64_t until_ns; /* the end of that time; 0: none */
    size_t most;      /* bytes of a message that is received */
    const struct tec_client_trust *trust; /* of URLs with TLS; NULL: there are none; borrowed */
    struct tec_client_secure secure;      /* of the connection */
    char url[300];                        /* for messages */
    size_t n, at;                         /* of what was received behind the handshake */
    uint8_t held[4096];
};

/* TEC_INVALID for a URL of another kind than below; *secure: it asks for TLS. */
enum tec_status tec_client_check_url(const char *url, bool *secure, struct tec_error *err);

/* "ws://HOST:PORT/PATH" (8000 and "/" unless given), or "wss://..." (443) for TLS, with a server
 * that proves who it is by `trust`, which outlives the socket; "https" means the same. A URL with
 * TLS is never spoken without. `key` NULL or what --key asks for; `asker` and `wait_ms` as above.
 * TEC_INVALID for another kind of URL, TEC_IO where nobody answers, where the server does not prove
 * who it is, or where it refuses, with its first line. */
enum tec_status tec_client_connect(struct tec_client_socket *s, const char *url, const char *key,
                                   const struct tec_client_trust *trust, int asker, int wait_ms,
                                   struct tec_error *err);
/* The same over `fd`, a connected socket, which is taken: the URL, one without TLS, is for
 * messages.
 */
enum tec_status tec_client_connect_over(struct tec_client_socket *s, int fd, const char *url,
                                        const char *key, int asker, struct tec_error *err);
/* The same as the first for a socket whose asker, wait_ms, most and trust are set. */
enum tec_status tec_client_connect_again(struct tec_client_socket *s, const char *url,
                                         const char *key, struct tec_error *err);
void tec_client_close(struct tec_client_socket *s);

/* Whether the server has closed it; to be asked between a reply and the next request. */
bool tec_client_ended(struct tec_client_socket *s);

/* Send one binary message. */
enum tec_status tec_client_send(struct tec_client_socket *s, const void *data, size_t n,
                                struct tec_error *err);

/* Receive one message of at most 64 MiB into `out`, which is emptied first; pings are answered.
 * *refused: it is a text, in which servers state their errors. TEC_TIME when the asker has left, or
 * wait_ms have passed since the request, or since the handshake began: messages that are received
 * meanwhile do not prolong it. */
enum tec_status tec_client_receive(struct tec_client_socket *s, struct tec_buffer *out,
                                   bool *refused, struct tec_error *err);

/* The sentence of a refusal, of *n bytes at most 300, where it lies in the reply: its last line,
 * which of a traceback is the exception. */
const char *tec_client_refusal(const struct tec_buffer *reply, int *n);

/* There may be bytes that have been received and not been read: poll does not know of them. */
bool tec_client_pending(const struct tec_client_socket *s);

/* Read one frame between requests, if one has begun to come: a ping is answered, data are left in
 * `out`. TEC_IO: the server closes the connection. */
enum tec_status tec_client_idle(struct tec_client_socket *s, struct tec_buffer *out,
                                struct tec_error *err);

#endif
