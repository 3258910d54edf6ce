/* interpret.h - the executor that runs the graph as it is written: one node, one request, one step
 * a launch. What it computes is what a pipeline means; every other execution of the same decisions
 * must give the same bytes. */
#ifndef TEC_GRAPH_RUN_LAUNCH_INTERPRET_H
#define TEC_GRAPH_RUN_LAUNCH_INTERPRET_H

#include "graph/run/launch/executor.h"

/* Runs captures of a plan that was made with spec.interpret: there the prefill and the actions of a
 * frame are launches of their own, no activation lies where another has been, every command waits
 * for the one before, and nothing is chained. Decodes run row by row and token by token, a ring's
 * forward as a prefill and then each row, a prefill in slices as a whole with its first slice, and
 * there is no second stream. Borrowed: the plan. */
struct tec_executor tec_executor_interpret(struct tec_plan *plan);

#endif
