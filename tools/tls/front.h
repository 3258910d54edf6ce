/* front.h - TLS before the server: it takes connections, makes their handshakes, and hands each to
 * the server as a socket on which the same bytes are plain.
 *
 *     client == TLS == [handshakes] -> [relay] -- socketpair -- connection thread, or POST /act
 *
 * Two threads of its own. The first makes handshakes, one after the other and after everything else
 * on the machine (nice): the arithmetic of strangers costs no robot its time. The second passes
 * bytes on. The connection thread, the engine and the library that speaks WebSocket see no TLS. */
#ifndef TEC_TOOLS_TLS_FRONT_H
#define TEC_TOOLS_TLS_FRONT_H

#include "base/alloc.h"
#include "base/thread.h"
#include "tools/serve/listen.h"
#include "tools/tls/context.h"
#include "tools/tls/link.h"

#include <sys/socket.h>

enum {
    TEC_TLS_PORTS = 3,
    TEC_TLS_HANDSHAKES = 128, /* in progress; a further one takes the place of the oldest */
    TEC_TLS_HANDSHAKE_S = 5   /* so long one may take */
};

/* A port. `hand` takes a connection that may be used, from the thread of the handshakes: it must
 * not block, and closes the socket where it cannot take it. */
struct tec_tls_port {
    struct tec_listener listener; /* it listens; given */
    void (*hand)(void *user, int fd, const struct sockaddr_storage *peer, socklen_t peer_n);
    void *user;
};

struct tec_tls_handshake {
    struct ssl_st *ssl;
    int fd, port;
    int64_t began_ns;
    short waits; /* for poll(2) */
};

/* Owned by the caller of open until stop; must not move in between. Zeroed: there is no TLS. */
struct tec_tls_front {
    struct ssl_ctx_st *context; /* NULL: there is no TLS */
    struct tec_heap *heap;
    const char *verb;     /* in lines on stderr: "tectum VERB: ..."; borrowed */
    int door;             /* where connections of the first port are handed to; -1: closed */
    int n_ports, n_links; /* n_links: connections behind their handshakes, at most */
    struct tec_tls_port ports[TEC_TLS_PORTS];
    /* Of the thread of the handshakes. */
    struct tec_tls_handshake handshakes[TEC_TLS_HANDSHAKES]; /* the oldest first */
    int n_handshakes;
    int64_t told_ns; /* when it was last said why one failed */
    /* Of the relay. */
    struct tec_tls_link **links;
    struct pollfd *polled;
    int n;

    int wake[2];   /* eventfds: of the handshakes, of the relay; -1: none */
    int passed[2]; /* a pipe of links, from the first to the second */
    pthread_t taker, relay;
    bool taking, relaying; /* whether they run */
};

/* Read and judge the files; nothing is taken yet. Without files the front stays without TLS, and
 * the functions below do nothing. Errors are those of tec_tls_context_open. */
enum tec_status tec_tls_front_open(struct tec_tls_front *f, const struct tec_tls_asked *asked,
                                   const char *verb, struct tec_heap *heap, struct tec_error *err);

/* File descriptors beside those of the servers themselves, for `n` connections of theirs. */
int tec_tls_descriptors(const struct tec_tls_front *f, int n);

/* The first port, the connection thread's: `listener` is taken, and *out is what that thread has in
 * its place (listen.h). TEC_IO. */
enum tec_status tec_tls_front_door(struct tec_tls_front *f, const struct tec_listener *listener,
                                   int n, struct tec_listener *out, struct tec_error *err);

/* One more port, of at most `n` connections. Before start. */
void tec_tls_front_add(struct tec_tls_front *f, const struct tec_tls_port *port, int n);

/* A connection to the server from within the program, which needs no TLS: a blocking socket, the
 * caller's, or -1. Any thread, between start and stop. */
int tec_tls_front_dial(struct tec_tls_front *f);

/* Start both threads; connections are taken. TEC_NO_MEMORY, TEC_IO. */
enum tec_status tec_tls_front_start(struct tec_tls_front *f, struct tec_error *err);

/* Schedule the relay, which passes on what is due. After start. */
enum tec_status tec_tls_front_schedule(struct tec_tls_front *f, const struct tec_scheduling *how,
                                       struct tec_error *err);

/* Take no further connection; those that are there go on. Before the servers are stopped. */
void tec_tls_front_leave(struct tec_tls_front *f);

/* Behind the servers' end: what they have said last leaves, for half a second at most; everything
 * is closed. Zeroed is allowed. */
void tec_tls_front_stop(struct tec_tls_front *f);

#endif
