/* http_context.h - libwebsockets set up for one thread that serves HTTP and WebSocket: of the
 * server and of the page of --view. */
#ifndef TEC_TOOLS_SERVE_HTTP_CONTEXT_H
#define TEC_TOOLS_SERVE_HTTP_CONTEXT_H

#include "base/error.h"

#include <libwebsockets.h>

enum { TEC_HTTP_SECONDS = 5 /* for a handshake, and for an answer to be taken */ };

/* What the two differ in. */
struct tec_http_context {
    const struct lws_protocols *protocols; /* end with a name of NULL; the first has the door */
    void *user;                            /* of the context, for callbacks */
    unsigned chunk;                        /* bytes that are read at once */
    unsigned sockets;                      /* that are open at once, at most */
    int listener;                          /* a descriptor that is readable when one comes */
};

/* The library's context and, in it, the listener, which is the library's from then on. It logs
 * nothing, and sends no pings of its own: libwebsockets 4.1 may lose the answer to a client's ping
 * that is under way then, and the client gives up. Peers that are dead or take nothing are TCP's to
 * find (listen.c). TEC_NO_MEMORY; *context is then NULL or the caller's to destroy. */
enum tec_status tec_http_open(struct lws_context **context, struct lws **door,
                              const struct tec_http_context *what, struct tec_error *err);

#endif
