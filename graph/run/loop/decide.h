/* decide.h - asks the policy for a frame's decision. */
#ifndef TEC_GRAPH_RUN_LOOP_DECIDE_H
#define TEC_GRAPH_RUN_LOOP_DECIDE_H

#include "graph/run/loop/state.h"

/* The policy's decision for this frame, and the launches that it comes to. */
void tec_loop_plan(struct tec_loop *l);

#endif
