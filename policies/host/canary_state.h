/* canary_state.h - what the files of the canary share, and which thread owns what of it. */
#ifndef TEC_POLICIES_HOST_CANARY_STATE_H
#define TEC_POLICIES_HOST_CANARY_STATE_H

#include "base/ring.h"
#include "base/triple.h"
#include "policies/host/canary.h"
#include "policies/host/state.h"

#include <stdatomic.h>

enum { TEC_CANARY_EVENTS = 64, TEC_CANARY_POLICIES = 8 }; /* waiting; alive at a time */

enum tec_canary_order {
    TEC_CANARY_ORDER_ROLLBACK = 1,
    TEC_CANARY_ORDER_DROP = 2,
    TEC_CANARY_ORDER_FALLBACK = 4,
    TEC_CANARY_ORDER_REINSTATE = 8
};

/* The frame thread writes `copy` in ASKED, the loader reads it in TAKEN. */
enum tec_canary_copy { TEC_CANARY_COPY_IDLE, TEC_CANARY_COPY_ASKED, TEC_CANARY_COPY_TAKEN };

struct tec_canary {
    struct tec_canary_options o; /* immutable after create */
    struct tec_heap *heap;
    struct tec_arena arena;

    /* The frame thread's. */
    struct tec_planner active, previous, candidate; /* self NULL: nobody */
    int64_t frame;
    bool ended;     /* observed: the next call begins a frame */
    int64_t since;  /* frames of the active policy that had an observation */
    int64_t struck; /* strikes it had when it came into force */
    bool standby;   /* its fallback decided in the last frame */
    struct tec_canary_trial trial;
    struct tec_decision shadow; /* the candidate's */

    /* Shared. */
    _Atomic(struct tec_policy *) in_force; /* stored by the frame thread */
    _Atomic(struct tec_policy *) incoming; /* stored by the loader, taken by the frame thread */
    _Atomic uint32_t orders;
    _Atomic int copy_stage; /* enum tec_canary_copy */
    struct tec_state_copy copy;
    struct tec_ring retired; /* struct tec_policy *, to the loader */
    struct tec_ring events;  /* struct tec_canary_event, to the loader */

    struct tec_canary_status *views; /* [TEC_TRIPLE_PLACES] */
    struct tec_triple newest;        /* of views: the frame thread writes, the loader reads */

    _Atomic bool busy; /* a candidate is on its way or on trial */

    /* The loader's. */
    struct tec_policy *built; /* waits for the state */
    bool needs_state;
    int alive;       /* policies not yet closed */
    char trying[80]; /* the last one that was loaded */
};

/* The frame thread's: show how things stand. */
void tec_canary_show(struct tec_canary *canary);

#endif
