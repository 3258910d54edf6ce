/* events.h - what the frame loop tells as it happens: every launch, every operation on requests and
 * on keys and values, every release. The order and the meaning are those of doc/schedules.md.
 *
 * Emitted on the frame thread; what an event points to is valid during the call. A sink neither
 * allocates nor blocks when the loop runs on a robot; a simulation's may. */
#ifndef TEC_GRAPH_RUN_LAUNCH_EVENTS_H
#define TEC_GRAPH_RUN_LAUNCH_EVENTS_H

#include "graph/run/launch/launch_ring.h"
#include "graph/run/launch/planner.h"

#include <stdbool.h>
#include <stdint.h>

/* Recordings have these numbers: a new kind stands at the end, and none changes its number. */
enum tec_event_kind {
    TEC_EVENT_FRAME,   /* a frame opens */
    TEC_EVENT_CANCEL,  /* `request` is given up from outside; `flag`: it was alive */
    TEC_EVENT_SHED,    /* `request` is given up; `what`: why */
    TEC_EVENT_ARRIVE,  /* a request of `node` with `tokens` at most */
    TEC_EVENT_ADMIT,   /* it has a request slot */
    TEC_EVENT_REFUSE,  /* it has none; `what`: why */
    TEC_EVENT_INPUT,   /* inputs that were late are here */
    TEC_EVENT_PLAN,    /* the decision after snapping: `decision`, `order`, `n` */
    TEC_EVENT_KV,      /* `what` is done to `kv`: alloc fork append free, and store retrieve update
                          remove batch unbatch; of a memory remember (what was said, by
                          `node`); of a ring alloc flush evict rotate copy gather */
    TEC_EVENT_START,   /* a launch of `node`; of a prefill in slices `flag`: by the decision's */
    TEC_EVENT_END,     /* it has ended; `since_ns`: its start */
    TEC_EVENT_RELEASE, /* actions leave; `flag`: after the deadline; `since_ns`: the tick; `done`:
                          how many times their chunk had left before; `k`: observations since it
                          left first */
    TEC_EVENT_TOKENS,  /* `request` has made `tokens` more, `done` in all */
    TEC_EVENT_FINISH,  /* it has all; `what`: "eos" or "length"; `since_ns`: when it was born */
    TEC_EVENT_VERSION, /* the text of `request`, of `tokens`, is the newest of stream `what` */
    TEC_EVENT_READ, /* `node` reads stream `what`: the text of `request`, born `frames` frames ago
                       and at `since_ns`; -1: its default */
    TEC_EVENT_LEFT_OUT,  /* the decision leaves action `node` out of the frame; `what`: why; `flag`:
                           after its deadline */
    TEC_EVENT_FRAME_END, /* `record`; `since_ns`: when the frame opened */
    /* Numbers between are those of recordings alone (recorder.h). No prompt can be made of the text
     * of `request` of `node`, stream `what`: its readers keep the one before; `from`: where, why */
    TEC_EVENT_UNREAD = TEC_EVENT_FRAME_END + 5,
    TEC_EVENTS
};

/* `what` of SHED in front of the plan, by the clock and to make room. Texts end with these reasons,
 * too. */
#define TEC_SHED_LATE "deadline"
#define TEC_SHED_EVICTED "evicted"

struct tec_tick;
struct tec_frame_record;

/* A row segment of a ring's forward: `rows` of a request from position `pos` on, which see
 * `visible` keys in the ring's slot. Stage: tokens that it has. */
struct tec_ring_segment {
    int ring, session; /* ring: of the topology's */
    int64_t request;
    int stage, slot, rows, pos, visible;
};

/* Additional fields of a ring's events; lists are as long as the event's n. */
struct tec_ring_event {
    int slot, base;           /* KV alloc, evict; rotate: where the next one enters; -1 = not so */
    int depth, forwards;      /* PLAN: of the first ring */
    const int *depths;        /* PLAN: of each of the topology's rings */
    int64_t bytes;            /* KV copy, gather: one way; else 0 */
    const int *slots, *done;  /* KV flush; TOKENS */
    const int *of, *sessions; /* TOKENS: which of the topology's rings each is in, and whose */
    const struct tec_ring_segment *segments; /* START of a forward */
    const struct tec_ring_move *moves;       /* KV copy */
};

struct tec_event {
    enum tec_event_kind kind;
    bool flag;
    int lane; /* 0; 1 for work on a partition beside the frame's hard nodes, 2 for what follows both
               */
    int64_t t_ns, since_ns;
    const struct tec_tick *tick; /* of the frame */
    int node;                    /* index into the topology; -1 = none */
    int64_t request;             /* -1 = none */
    const char *what, *kv, *from;
    int tokens, done, rows, padded, k, frames;
    int drafted, kept; /* END of a launch, FINISH: tokens that a draft proposed; of these what was
                        * said */
    int slices, of;    /* START of a prefill in slices: of so many; else 0 */
    int observations;  /* START of a hard node: of so many sessions */
    int n;             /* of requests, or of order */
    const int64_t *requests; /* [n] */
    const struct tec_decision *decision;
    const struct tec_request_view *view;     /* rows of the decision */
    const struct tec_segment_view *segments; /* PLAN: [n_segments] that the decision saw */
    int n_segments;
    const int *order; /* [n] rows of the decision in launch order */
    const struct tec_frame_record *record;
    const float *chunk;                /* RELEASE: [horizon, dim] */
    const struct tec_ring_event *ring; /* NULL: not of a ring. START, END: `what` is the launch */
};

/* emit may be NULL. */
struct tec_event_sink {
    void (*emit)(void *self, const struct tec_event *event);
    void *self;
};

#endif
