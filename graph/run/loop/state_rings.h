/* state_rings.h - between the files of the frame loop: the rings of its chains, each with a state
 * of its own a session. */
#ifndef TEC_GRAPH_RUN_LOOP_STATE_RINGS_H
#define TEC_GRAPH_RUN_LOOP_STATE_RINGS_H

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

/* ring.c: sequences in flight in rings, one forward after the other. */
void tec_rings_open(struct tec_loop *l); /* takes what regions they keep */
void tec_rings_close(struct tec_loop *l);
/* What is in flight is dropped. */
void tec_ring_flush(struct tec_loop *l, struct tec_ring_state *ring);
/* The same in the rings of the session whose turn it is whose newest observation was of another
 * episode: they fill anew. */
void tec_rings_begin(struct tec_loop *l, int64_t episode);
/* Of this frame's decision, and the forwards that it comes to. */
int tec_ring_depth(const struct tec_loop *l, const struct tec_ring_state *ring);
int tec_ring_forwards(const struct tec_loop *l, const struct tec_ring_state *ring);
/* The items of all rings that share the plan of a chain, of the sessions that do not rest: of a
 * frame that its first ring begins. */
void tec_rings_add(struct tec_loop *l, struct tec_chain *c);
/* A frame without actions of the ring: whether it owed some, and why there are none. */
bool tec_ring_missed(struct tec_loop *l, struct tec_ring_state *ring, enum tec_cause *cause);
/* Every launch of the rings that share a chain's plan once, and what the costs learn of it. */
void tec_rings_warm(struct tec_loop *l, const struct tec_chain *c,
                    const struct tec_frame_input *input);
/* Chunks of the session's rings but one that leave in what is left of this frame. */
int tec_rings_to_come(const struct tec_loop *l, const struct tec_ring_state *but);
/* Tokens in flight; sequences of all rings and sessions. */
int64_t tec_ring_used(const struct tec_ring_state *ring);
int tec_rings_in_flight(const struct tec_loop *l);

#endif
