/* listen.h - the server's socket: bound while the model loads, so that a port in use is known at
 * once, but not listening before it is ready: a client that is too early is refused and tries
 * again.
 */
#ifndef TEC_TOOLS_SERVE_LISTEN_H
#define TEC_TOOLS_SERVE_LISTEN_H

#include "base/error.h"

/* Bind a TCP socket. `host`: an address or a name; `port` 0 = any that is free. *out is closed by
 * the caller. TEC_INVALID for a host that there is not, TEC_IO for a port that cannot be had. */
enum tec_status tec_listen_bind(int *out, const char *host, int port, struct tec_error *err);

/* Connections are taken from now on. *port: the one that was bound. */
enum tec_status tec_listen_start(int fd, int *port, struct tec_error *err);

/* The next connection, not blocking and without delay, or -1. */
int tec_listen_accept(int fd);

/* Tell a connection that there is no room, and close it. */
void tec_listen_refuse(int connection);

#endif
