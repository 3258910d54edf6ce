/* ring.h - sequences in flight in rings, one forward after the other. */
#ifndef TEC_GRAPH_RUN_LOOP_RING_H
#define TEC_GRAPH_RUN_LOOP_RING_H

#include "graph/run/loop/state.h"

void tec_rings_open(struct tec_loop *l); /* takes what regions they keep */
void tec_rings_close(struct tec_loop *l);
/* What is in flight is dropped: in one ring, in those of a session. They fill anew. */
void tec_ring_flush(struct tec_loop *l, struct tec_ring_state *ring);
void tec_rings_empty(struct tec_loop *l, int session);
/* The same in the rings of the session whose turn it is whose newest observation was of another
 * episode. */
void tec_rings_begin(struct tec_loop *l, int64_t episode);
/* The items of all rings that share the plan of a chain, of the sessions that do not rest: of a
 * frame that its first ring begins. */
void tec_rings_add(struct tec_loop *l, struct tec_chain *c);

#endif
