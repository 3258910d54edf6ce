/* net.h - the connection side of the server: one thread that speaks HTTP and WebSocket with every
 * client and never computes, so that pings are answered while the engine is busy. */
#ifndef TEC_TOOLS_SERVE_NET_H
#define TEC_TOOLS_SERVE_NET_H

#include "base/clock.h"
#include "tools/serve/reply.h"
#include "tools/serve/slot.h"
#include "tools/serve/stats.h"
#include "tools/serve/watch.h"

#include <libwebsockets.h>
#include <pthread.h>

struct tec_net_options {
    struct tec_exchange *exchange; /* borrowed; its wake and user are set here */
    struct tec_heap *heap;         /* borrowed */
    int listener;                  /* a socket that listens; given */
    int signals;                   /* a signalfd whose signals end the server; given; -1 = none */
    size_t max_message;            /* bytes */
    int max_connections; /* at most the exchange's jobs: more of those let a client connect
                            again while the engine still has its last job */
    struct tec_watch_options watch;
    int stall_s;            /* seconds for a message to be whole, a reply to be taken */
    const json_t *metadata; /* the first message of a connection; NULL = {}; borrowed */
};

/* Rings when a slot's reply is due. */
struct tec_net_alarm {
    lws_sorted_usec_list_t list;
    struct tec_net *net;
    struct tec_watch watch;
};

/* Owned by the caller of start until stop; must not move in between. */
struct tec_net {
    struct tec_net_options options;
    struct tec_arena arena, moment;
    struct tec_net_alarm *alarms; /* [exchange->n] */
    struct tec_slot *slots;       /* [exchange->n] one a job */
    struct lws_context *context;
    struct lws *listener, *signals;
    int sockets; /* open, with or without a handshake */
    uint8_t *hello;
    size_t hello_n;
    struct tec_serve_stats stats; /* to be read after stop */
    struct tec_clock clock;
    _Atomic bool stopping;
    bool leaving; /* every connection is being told so */
    bool started;
    pthread_t thread;
};

/* Start the thread. Connections are taken as soon as it runs. */
enum tec_status tec_net_start(struct tec_net *net, const struct tec_net_options *options,
                              struct tec_error *err);
/* Say good-bye to everybody and end the thread. The engine side must be over. Zeroed is allowed. */
void tec_net_stop(struct tec_net *net);

#endif
