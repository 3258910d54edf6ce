/* groot_server.h - GR00T's protocol on a ZeroMQ socket: requests of many clients are answered side
 * by side, each by a thread that asks the server as any client does.
 *
 *     clients' REQ <-> ROUTER of the socket's thread -> queue -> a worker -> the server
 *                      the same thread <- PULL <----------------- its reply */
#ifndef TEC_TOOLS_GATEWAY_GROOT_SERVER_H
#define TEC_TOOLS_GATEWAY_GROOT_SERVER_H

#include "tools/gateway/groot.h"
#include "tools/gateway/upstream.h"

enum {
    TEC_GROOT_QUEUE = 64,   /* requests at once, one a client */
    TEC_GROOT_WORKERS = 16, /* of these are answered at once */
    TEC_GROOT_CLIENT = 255  /* bytes of the name that ZeroMQ has for a connection */
};

struct tec_groot_server_options {
    const char *host; /* an address; "[::1]" of IPv6 */
    int port;         /* 0 = any that is free */
    struct tec_gateway_names names;
    int rows;           /* of a chunk */
    const char *url;    /* of the server that answers */
    struct tec_key key; /* that clients must show as api_token, and the server asks for */
    struct tec_heap *heap;
    size_t max_message; /* bytes */
    int workers;        /* 1 .. TEC_GROOT_WORKERS */
};

/* A connection of ZeroMQ's. */
struct tec_groot_client {
    uint8_t id[TEC_GROOT_CLIENT];
    size_t n;
};

/* A request between its client and its worker. */
struct tec_groot_work {
    enum { TEC_GROOT_FREE, TEC_GROOT_WAITS, TEC_GROOT_WORKS } state;
    int64_t number; /* in the order in which they came */
    struct tec_groot_client client;
    struct tec_buffer message;
};

/* Owned by the caller of start until stop; must not move in between. Zeroed: not started. */
struct tec_groot_server {
    struct tec_groot_server_options options;
    struct tec_groot_robot robot;
    struct tec_upstream upstream;
    void *context, *router, *results; /* ZeroMQ's; the sockets are the socket's thread's */
    pthread_t thread, workers[TEC_GROOT_WORKERS];
    int n_workers;
    _Atomic bool started;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t more;
    bool stops;
    int64_t number;
    struct tec_groot_work queue[TEC_GROOT_QUEUE];
    struct tec_groot_episode { /* begun by reset: it is a session of its own */
        struct tec_groot_client client;
        int resets;
        int64_t number; /* of its newest request */
    } episodes[TEC_GROOT_QUEUE];
};

/* *port: the one that was bound. TEC_INVALID or TEC_IO where it does not start. */
enum tec_status tec_groot_server_start(struct tec_groot_server *s, int *port,
                                       const struct tec_groot_server_options *options,
                                       struct tec_error *err);

/* Take no further request; those that are being answered are finished. Any thread, before stop. */
void tec_groot_server_leave(struct tec_groot_server *s);

/* The server that answers must have ended, or answer still. Nobody may be inside leave. */
void tec_groot_server_stop(struct tec_groot_server *s);

#endif
