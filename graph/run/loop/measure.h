/* measure.h - what launches took, added to what is known of their costs. */
#ifndef TEC_GRAPH_RUN_LOOP_MEASURE_H
#define TEC_GRAPH_RUN_LOOP_MEASURE_H

#include "graph/run/loop/state.h"

/* The device worked so long: no time of the host. */
void tec_loop_replayed(struct tec_loop *l, int64_t start_ns, int64_t end_ns);

/* A launch of a chain's prefill over n observations, and of the action behind it. */
void tec_loop_measure_prefix(struct tec_loop *l, const struct tec_chain *c,
                             const struct tec_replay *r, bool action, int n);
/* A launch of a model: of at most `times` steps, of which `steps` were made. */
void tec_loop_measure(struct tec_loop *l, const struct tec_chain *c, enum tec_cost_kind kind,
                      int rows, int times, int steps, int64_t ns);
/* A launch of a ring: PACKED by its point, DECODE by its rows, SHIFT of so many tokens. */
void tec_loop_measure_ring(struct tec_loop *l, const struct tec_ring_state *ring,
                           enum tec_cost_kind kind, const struct tec_replay *r, int n);

#endif
