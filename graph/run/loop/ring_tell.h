/* ring_tell.h - forwards of rings, and what becomes of their keys and values, told. */
#ifndef TEC_GRAPH_RUN_LOOP_RING_TELL_H
#define TEC_GRAPH_RUN_LOOP_RING_TELL_H

#include "graph/run/loop/state.h"

static inline struct tec_ring_event tec_ring_event(void)
{
    return (struct tec_ring_event){.slot = -1, .base = -1};
}

/* What is done to keys and values of a ring; to one sequence of it. */
void tec_ring_tell_kv(const struct tec_loop *l, const struct tec_ring_state *ring,
                      struct tec_event event, struct tec_ring_event more);
void tec_ring_tell_item(const struct tec_loop *l, const struct tec_ring_state *ring,
                        const char *what, const struct tec_ring_item *it);
/* A forward, whose replay it was; the tokens that it made. */
void tec_ring_tell_forward(const struct tec_loop *l, const struct tec_ring_flight *f,
                           const struct tec_replay *r);
void tec_ring_tell_tokens(const struct tec_loop *l, const struct tec_ring_flight *f, int64_t at_ns);
/* Keys that were moved, by a launch of that time. */
void tec_ring_tell_copy(const struct tec_loop *l, const struct tec_ring_state *ring,
                        const struct tec_ring_move *moves, int n, const struct tec_replay *r);

#endif
