/* listen.h - the server's socket: bound while the model loads, so that a port in use is known at
 * once, but not listening before it is ready: a client that is too early is refused and tries
 * again. */
#ifndef TEC_TOOLS_SERVE_LISTEN_H
#define TEC_TOOLS_SERVE_LISTEN_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A socket to listen on, and a descriptor that is only there to be given up where no other is left.
 * -1: not open. Closed by tec_listen_close. */
struct tec_listener {
    int fd, spare;
    bool is_door;   /* fd is a pipe on which connections come that the program itself hands over */
    int patience_s; /* seconds that a peer may take nothing of what was sent; 0: the system's */
};

/* Bind a TCP socket. `host`: an address or a name; `port` 0 = any that is free; `option` gave it.
 * TEC_INVALID for a host that there is not, TEC_IO for a port that cannot be had. */
enum tec_status tec_listen_bind(struct tec_listener *l, const char *host, int port,
                                const char *option, struct tec_error *err);

/* A socket that the service manager listens on already (service_manager.h). */
void tec_listen_inherit(struct tec_listener *l, int fd);

/* A listener of another kind: its connections are handed over through *hand, a descriptor that the
 * caller closes last. TEC_IO. */
enum tec_status tec_listen_door(struct tec_listener *l, int *hand, struct tec_error *err);

/* Hand over a connection, which must not block; false: it was not taken. Any thread. */
bool tec_listen_hand(int hand, int connection);

/* The address that it has, as numbers, with brackets around one of IPv6; "" where there is none. */
void tec_listen_address(const struct tec_listener *l, char *text, size_t room);

/* Whether only this machine can reach what was bound. */
bool tec_listen_is_local(const struct tec_listener *l);

/* Room for `n` file descriptors: the soft limit is raised as far as the hard one allows.
 * TEC_UNSUPPORTED with the number that would do. */
enum tec_status tec_listen_descriptors(int n, struct tec_error *err);

/* Connections are taken from now on. *port: the one that was bound. */
enum tec_status tec_listen_start(struct tec_listener *l, int *port, struct tec_error *err);

/* The next connection, not blocking and without delay, or -1: there is none, or no descriptor is
 * left for it, and it was told so. */
int tec_listen_accept(struct tec_listener *l);

/* Close what is open of it. */
void tec_listen_close(struct tec_listener *l);

/* Tell a connection that there is no room, and close it. */
void tec_listen_refuse(int connection);

#endif
