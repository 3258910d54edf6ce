/* net_state.h - the connection thread: what it is given, and what it has. */
#ifndef TEC_TOOLS_SERVE_NET_STATE_H
#define TEC_TOOLS_SERVE_NET_STATE_H

#include "base/clock.h"
#include "base/thread.h"
#include "tools/serve/guard.h"
#include "tools/serve/key.h"
#include "tools/serve/listen.h"
#include "tools/serve/metrics.h"
#include "tools/serve/reply.h"
#include "tools/serve/slot.h"
#include "tools/serve/stats.h"
#include "tools/serve/watch.h"

#include <libwebsockets.h>
#include <pthread.h>

struct tec_net_options {
    struct tec_exchange *exchange; /* borrowed; its wake and user are set here */
    struct tec_heap *heap;         /* borrowed */
    struct tec_listener listener;  /* it listens; given */
    struct tec_key key;            /* that clients must show */
    struct tec_guard *guard;       /* is told that the thread is alive; borrowed; NULL: none */
    size_t max_message;            /* bytes */
    int max_connections; /* at most the exchange's jobs: more of those let a client connect
                            again while the engine still has its last job */
    struct tec_watch_options watch;
    int stall_s;                       /* seconds for a message to be whole, a reply to be taken */
    struct tec_metrics_source metrics; /* of GET /metrics; its stats and safety are set here;
                                        * engine NULL: there are none */
    const json_t *metadata;            /* the first message of a connection; NULL = {}; borrowed */
};

/* Sockets beyond the connections: handshakes in progress, /healthz. */
enum { TEC_NET_HANDSHAKES = 128, TEC_NET_SPARE = 32 };

/* Rings when a slot's reply is due. */
struct tec_net_alarm {
    lws_sorted_usec_list_t list;
    struct tec_net *net;
    struct tec_watch watch;
    int fd; /* of the slot's connection; for tec_net_rescue alone */
};

/* Owned by the caller of start until stop; must not move in between. */
struct tec_net {
    struct tec_net_options options;
    struct tec_arena arena, moment;
    struct tec_net_alarm *alarms; /* [exchange->n] */
    struct tec_slot *slots;       /* [exchange->n] one a job */
    struct lws_context *context;
    struct lws *listener;
    struct lws *handshakes[TEC_NET_HANDSHAKES]; /* in progress, the oldest first */
    int n_handshakes, sockets;                  /* sockets: open, with or without a handshake */
    lws_sorted_usec_list_t beat;
    pthread_mutex_t turn; /* recursive; held in every event, by the connection thread or by
                             tec_net_rescue */
    uint8_t *hello;
    size_t hello_n;
    struct tec_serve_stats stats; /* to be read after stop */
    struct tec_clock clock;
    _Atomic bool stopping;
    _Atomic int64_t drained_by_ns; /* tec_net_drain's; 0: it was not asked for */
    bool leaving;                  /* every connection is being told so */
    bool started;
    pthread_t thread;
};

/* Sockets that a server for so many connections has open at most. */
static inline int tec_net_sockets(int max_connections)
{
    return max_connections + TEC_NET_HANDSHAKES + TEC_NET_SPARE;
}

#endif
