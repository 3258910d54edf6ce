/* asks.h - what consumers ask of the frame thread about requests: start one, give one up. Tickets
 * in a ring; consumers share a lock among themselves, the frame thread takes none and never waits.
 *
 * A ticket's outcome is kept until TEC_ASKS_KEPT newer ones have been taken. */
#ifndef TEC_TOOLS_API_ASKS_H
#define TEC_TOOLS_API_ASKS_H

#include "base/bell.h"
#include "graph/run/loop.h"

#include <pthread.h>

enum { TEC_ASKS_KEPT = 64 };

struct tec_ticket {
    bool cancel;
    struct tec_ask ask;   /* of a request; with its outcome once it is settled */
    int64_t request;      /* of a cancel */
    bool live;            /* outcome of a cancel: it was alive */
    _Atomic bool settled; /* release: the outcome is there */
};

struct tec_asks {
    pthread_mutex_t lock; /* consumers' */
    _Atomic int64_t taken;
    struct tec_ticket tickets[TEC_ASKS_KEPT]; /* by number, modulo */
    struct tec_bell done;                     /* rings when some are settled */
    /* The frame thread's. */
    int64_t oldest, seen;        /* not settled; taken, as of the running frame */
    bool handled[TEC_ASKS_KEPT]; /* of those from `oldest` on */
    int n_asks, n_cancels;
    struct tec_ask asks[TEC_ASKS_KEPT];
    int64_t cancels[TEC_ASKS_KEPT];
    bool cancelled[TEC_ASKS_KEPT];
    int64_t ask_of[TEC_ASKS_KEPT], cancel_of[TEC_ASKS_KEPT]; /* tickets */
};

void tec_asks_init(struct tec_asks *asks);
void tec_asks_finish(struct tec_asks *asks);

/* A consumer: leave a ticket, -1 when all that are kept still wait for a frame. */
int64_t tec_asks_leave(struct tec_asks *asks, const struct tec_ticket *ticket);

enum tec_asks_state { TEC_ASKS_UNKNOWN, TEC_ASKS_WAITS, TEC_ASKS_SETTLED };

/* A consumer: what became of a ticket; *out is its copy once it is settled. Unknown: not taken yet,
 * or too old. */
enum tec_asks_state tec_asks_look(struct tec_asks *asks, int64_t ticket, struct tec_ticket *out);

/* The frame thread: put what waits into a tick; requests only where an observation is there. */
void tec_asks_put(struct tec_asks *asks, struct tec_tick *tick, bool observed);
/* The frame thread, when that frame has run: outcomes become visible. */
void tec_asks_settle(struct tec_asks *asks);
/* The frame thread: cancels wait. */
bool tec_asks_cancels_wait(const struct tec_asks *asks);

#endif
