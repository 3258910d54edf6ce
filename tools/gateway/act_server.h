/* act_server.h - POST /act as an HTTP server of its own: each connection has a thread, which asks
 * the server as any client does, over a connection of its own. */
#ifndef TEC_TOOLS_GATEWAY_ACT_SERVER_H
#define TEC_TOOLS_GATEWAY_ACT_SERVER_H

#include "tools/gateway/act.h"
#include "tools/gateway/upstream.h"
#include "tools/serve/key.h"
#include "tools/serve/listen.h"

struct tec_act_server_options {
    struct tec_listener listener; /* it listens; given */
    struct tec_gateway_names names;
    const char *url;    /* of the server that answers: "ws://127.0.0.1:8000" */
    struct tec_key key; /* that clients must show, and the server asks for */
    struct tec_heap *heap;
    size_t max_message;  /* bytes of a body */
    int max_connections; /* 1 .. TEC_UPSTREAM_MOST */
    int stall_s;         /* seconds for a request to be whole */
};

/* An open connection. */
struct tec_act_place {
    int fd;
    int64_t since_ns; /* when it came, or its newest request ended */
    bool works;       /* a request is being received or answered */
    bool ends;        /* it was shut down, and its thread has not closed it yet */
};

/* Connections at once, with those that are being closed. */
enum { TEC_ACT_PLACES = 2 * TEC_UPSTREAM_MOST };

/* Owned by the caller of start until stop; must not move in between. Zeroed: not started. */
struct tec_act_server {
    struct tec_act_server_options options;
    struct tec_upstream upstream;
    struct MHD_Daemon *daemon;
    _Atomic bool started;
    pthread_mutex_t lock; /* guards the places */
    int n_places;
    struct tec_act_place places[TEC_ACT_PLACES];
};

/* TEC_IO where it does not start. The listener's sockets are closed by stop, or here on failure. */
enum tec_status tec_act_server_start(struct tec_act_server *s,
                                     const struct tec_act_server_options *options,
                                     struct tec_error *err);

/* Take no further request; those that are being answered are finished. Any thread, before stop. */
void tec_act_server_leave(struct tec_act_server *s);

/* Close all connections. The server that answers must have ended, or answer still. Nobody may be
 * inside leave. */
void tec_act_server_stop(struct tec_act_server *s);

#endif
