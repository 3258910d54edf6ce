/* wire.h - bytes to and from a server in bounded time, plain or by TLS. Of socket.c alone. */
#ifndef TEC_TOOLS_CLIENT_WIRE_H
#define TEC_TOOLS_CLIENT_WIRE_H

#include "tools/client/socket.h"

/* From now on the time of this exchange counts. */
void tec_client_wire_begin(struct tec_client_socket *s);

/* Connect to a host. TEC_IO with the reason, TEC_TIME. */
enum tec_status tec_client_wire_dial(struct tec_client_socket *s, const char *host,
                                     const char *port, struct tec_error *err);

/* TLS on the connection from here on: its handshake with `host`, which must prove who it is by the
 * socket's trust. Where it fails nothing was said to the server. Errors are those of
 * tec_client_secure_shake and of receiving. */
enum tec_status tec_client_wire_secure(struct tec_client_socket *s, const char *host,
                                       struct tec_error *err);

enum tec_status tec_client_wire_send(struct tec_client_socket *s, const void *data, size_t n,
                                     struct tec_error *err);
/* Wait for n bytes. */
enum tec_status tec_client_wire_take(struct tec_client_socket *s, void *data, size_t n,
                                     struct tec_error *err);
/* Where `held` is empty, what has come goes there, without waiting; it may be nothing. */
enum tec_status tec_client_wire_look(struct tec_client_socket *s, struct tec_error *err);

/* The connection's end, of which the server is told where that does not wait. Without one: nothing.
 */
void tec_client_wire_end(struct tec_client_socket *s);

#endif
