/* ring_facts.h - the rings of a loop, each with a state of its own a session: which one it is, how
 * full and how deep, what it owes. */
#ifndef TEC_GRAPH_RUN_LOOP_RING_FACTS_H
#define TEC_GRAPH_RUN_LOOP_RING_FACTS_H

#include "graph/run/loop/state.h"

/* Ring `at` of the first session; what it is called and depends on is that of all sessions'. */
static inline struct tec_ring_state *tec_ring_first(const struct tec_loop *l, int at)
{
    return l->rings + (size_t)at * (size_t)l->sessions;
}

/* The same ring of the session whose turn it is. */
static inline struct tec_ring_state *tec_ring_own(const struct tec_loop *l,
                                                  struct tec_ring_state *first)
{
    return first + tec_own_session(l);
}

static inline const struct tec_plan_spec *tec_ring_spec(const struct tec_ring_state *ring)
{
    return &ring->chain->plan->spec;
}

/* Which of the topology's rings it is, and whose. */
static inline int tec_ring_index(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    return (int)(ring - l->rings) / l->sessions;
}

static inline int tec_ring_session(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    return (int)(ring - l->rings) % l->sessions;
}

/* Does its observation enter with forward `at` of the frame? */
static inline bool tec_ring_enters(const struct tec_ring_state *ring, int at)
{
    return at == 0 && ring->input;
}

/* Tokens of a sequence whose keys are there. */
static inline int tec_ring_stored(const struct tec_ring_item *it)
{
    return it->row.prefix + (it->stage > 0 ? it->stage - 1 : 0);
}

/* Of this frame's decision, and the forwards that it comes to. */
int tec_ring_depth(const struct tec_loop *l, const struct tec_ring_state *ring);
int tec_ring_forwards(const struct tec_loop *l, const struct tec_ring_state *ring);
/* A frame without actions of the ring: whether it owed some, and why there are none. */
bool tec_ring_missed(struct tec_loop *l, struct tec_ring_state *ring, enum tec_cause *cause);
/* Chunks of the session's rings but one that leave in what is left of this frame. */
int tec_rings_to_come(const struct tec_loop *l, const struct tec_ring_state *but);
/* Tokens in flight; sequences of a session's rings; of all rings and sessions. */
int64_t tec_ring_used(const struct tec_ring_state *ring);
int tec_rings_of_session(const struct tec_loop *l, int session);
int tec_rings_in_flight(const struct tec_loop *l);

#endif
