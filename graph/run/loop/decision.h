/* decision.h - what a frame's decision says of a node, of a request and of a prompt of segments. */
#ifndef TEC_GRAPH_RUN_LOOP_DECISION_H
#define TEC_GRAPH_RUN_LOOP_DECISION_H

#include "graph/run/loop/state.h"

/* Is an optional node left out of the frame? */
bool tec_loop_leaves_out(const struct tec_loop *l, int node);
/* Does row a come before row b: by their nodes' priorities, then by their own? */
bool tec_loop_before(const struct tec_loop *l, int a, int b);
/* What it says of a prompt of segments that is begun now, to who begins it; NULL: of none. */
void tec_loop_recompute(const struct tec_loop *l, const struct tec_chain *c,
                        const struct tec_memory_prompt *prompt);

#endif
