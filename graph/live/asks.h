/* asks.h - what consumers ask of the frame thread about requests: start one, give one up. Tickets
 * in a ring; consumers share a lock among themselves, the frame thread takes none and never waits.
 *
 * A ticket's outcome is kept until TEC_ASKS_KEPT newer ones have been taken. */
#ifndef TEC_GRAPH_LIVE_ASKS_H
#define TEC_GRAPH_LIVE_ASKS_H

#include "base/bell.h"
#include "graph/run/loop/loop.h"

#include <pthread.h>

enum { TEC_ASKS_KEPT = 64 };

struct tec_ticket {
    bool cancel;
    struct tec_ask ask;   /* a request to start, with its outcome once the ticket is settled */
    int64_t request;      /* a request to cancel */
    bool live;            /* outcome of a cancel: the request was still running */
    _Atomic bool settled; /* release: the outcome is there */
};

struct tec_asks {
    pthread_mutex_t lock; /* consumers' */
    _Atomic int64_t taken;
    struct tec_ticket tickets[TEC_ASKS_KEPT]; /* ticket n is at n % TEC_ASKS_KEPT */
    struct tec_bell done;                     /* rings when some are settled */
    /* The frame thread's. */
    int64_t oldest, seen;        /* first unsettled ticket; `taken` when the running frame began */
    bool handled[TEC_ASKS_KEPT]; /* tickets from `oldest` on that a frame has settled */
    int n_asks, n_cancels;
    struct tec_ask asks[TEC_ASKS_KEPT];
    int64_t cancels[TEC_ASKS_KEPT];
    bool cancelled[TEC_ASKS_KEPT];
    int64_t ask_of[TEC_ASKS_KEPT], cancel_of[TEC_ASKS_KEPT]; /* tickets */
};

void tec_asks_init(struct tec_asks *asks);
void tec_asks_finish(struct tec_asks *asks);

/* Consumer: queue a ticket and return its number, or -1 when the queue is full. */
int64_t tec_asks_leave(struct tec_asks *asks, const struct tec_ticket *ticket);

enum tec_asks_state { TEC_ASKS_UNKNOWN, TEC_ASKS_WAITS, TEC_ASKS_SETTLED };

/* Consumer: look up a ticket; *out is its copy once it is settled. A ticket that was never taken,
 * or is older than the queue remembers, is TEC_ASKS_UNKNOWN. */
enum tec_asks_state tec_asks_look(struct tec_asks *asks, int64_t ticket, struct tec_ticket *out);

/* Frame thread: move the waiting tickets into a tick; requests only if it has an observation. */
void tec_asks_put(struct tec_asks *asks, struct tec_tick *tick, bool observed);
/* Frame thread, after that frame: publish the outcomes. */
void tec_asks_settle(struct tec_asks *asks);
/* Frame thread: whether a cancel is waiting. */
bool tec_asks_cancels_wait(const struct tec_asks *asks);

#endif
