/* expected.h - what launches are expected to take, in microseconds: the quantile q of what was
 * measured, or of a table where the loop has one. */
#ifndef TEC_GRAPH_RUN_LOOP_EXPECTED_H
#define TEC_GRAPH_RUN_LOOP_EXPECTED_H

#include "graph/run/loop/state.h"

/* What a launch of a ring takes, as tec_loop_measure_ring; SHIFT: of one token. */
double tec_loop_ring_cost(const struct tec_loop *l, const struct tec_ring_state *ring,
                          enum tec_cost_kind kind, int n, double q);

/* A steady frame of all rings of these depths that so many sessions have, of which those of one
 * plan share forwards. */
double tec_loop_rings_cost(const struct tec_loop *l, const int *depths, int sessions, double q);

/* One launch of that kind (decode: one step) at so many rows. */
double tec_loop_launch_cost(const struct tec_loop *l, const struct tec_chain *c,
                            enum tec_cost_kind kind, int rows, double q);

/* The answer to a policy: what costs that, a node or a kind, at that point? `self`: the loop.
 * Negative: not known. */
double tec_loop_cost_of(const void *self, const char *what, double point, double q);

#endif
