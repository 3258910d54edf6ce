/* loop_chains.h - the chains of a loop: made, and their caches as policies see them. */
#ifndef TEC_GRAPH_RUN_LOOP_LOOP_CHAINS_H
#define TEC_GRAPH_RUN_LOOP_LOOP_CHAINS_H

#include "graph/run/loop/state.h"

enum tec_status tec_chains_init(struct tec_loop *l, struct tec_error *err);
void tec_chains_view(struct tec_loop *l); /* caches of all chains */

#endif
