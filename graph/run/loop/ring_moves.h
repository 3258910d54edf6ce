/* ring_moves.h - where rows of a ring lie, and keys of one whose slots are its stages. */
#ifndef TEC_GRAPH_RUN_LOOP_RING_MOVES_H
#define TEC_GRAPH_RUN_LOOP_RING_MOVES_H

#include "graph/run/loop/state.h"

/* Places a sequence's next row: its newest token is the next input. */
void tec_ring_place(const struct tec_ring_state *ring, struct tec_ring_item *it);
/* Whether a request of this frame, of the session whose turn it is, is to stand on the prefix of a
 * chain. */
bool tec_ring_asked(const struct tec_loop *l, const struct tec_chain *c);
/* Lists what forward `at` of the frame moves to flight.regions; returns how many moves. */
int tec_ring_list_moves(struct tec_loop *l, int at);
/* The items behind a forward of a ring, before what is whole leaves: a copy for requests where an
 * observation entered, and what moved with the forward is told. */
void tec_ring_add_told(struct tec_loop *l, const struct tec_ring_state *ring, bool enters);
/* And behind that: a launch that moves keys, where the forward did not. */
void tec_ring_add_shift(struct tec_loop *l, const struct tec_ring_state *ring);

#endif
