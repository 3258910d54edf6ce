/* socket.h - a WebSocket client that sends one message and waits for one (RFC 6455): for `tectum
 * probe`. It blocks; the server is trusted as little as any input. */
#ifndef TEC_TOOLS_PROBE_SOCKET_H
#define TEC_TOOLS_PROBE_SOCKET_H

#include "base/error.h"
#include "tools/record/buffer.h"

struct tec_probe_socket {
    int fd;        /* -1: none */
    char url[300]; /* for messages */
    size_t n, at;  /* of what was received behind the handshake */
    uint8_t held[4096];
};

/* "ws://HOST:PORT" (8000 unless given); `key` NULL or what --key asks for. TEC_INVALID for another
 * kind of URL, TEC_IO where nobody answers or the server refuses, with its first line. */
enum tec_status tec_probe_connect(struct tec_probe_socket *s, const char *url, const char *key,
                                  struct tec_error *err);
void tec_probe_close(struct tec_probe_socket *s);

/* Send one binary message. */
enum tec_status tec_probe_send(struct tec_probe_socket *s, const void *data, size_t n,
                               struct tec_error *err);

/* Receive one message of at most 64 MiB into `out`, which is emptied first; pings are answered. A
 * text message is a failure: servers state their errors so. TEC_TIME after 60 s. */
enum tec_status tec_probe_receive(struct tec_probe_socket *s, struct tec_buffer *out,
                                  struct tec_error *err);

#endif
