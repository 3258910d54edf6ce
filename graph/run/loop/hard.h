/* hard.h - prefill and actions. */
#ifndef TEC_GRAPH_RUN_LOOP_HARD_H
#define TEC_GRAPH_RUN_LOOP_HARD_H

#include "graph/run/loop/state.h"

/* The items of a chain in frames that is no ring. */
void tec_loop_add_hard(struct tec_loop *l, struct tec_chain *c);

#endif
