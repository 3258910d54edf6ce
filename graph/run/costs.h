/* costs.h - what launches cost on this machine: one histogram a variant, written by the frame
 * thread, read by policies. No floating-point state drifts: counts only. */
#ifndef TEC_GRAPH_RUN_COSTS_H
#define TEC_GRAPH_RUN_COSTS_H

#include "graph/compile/plan.h"

#include <stdint.h>

enum { TEC_COST_BUCKETS = 64 * 16 };

/* Durations in nanoseconds: sixteen buckets to a power of two, so a quantile is within 4.4 %. */
struct tec_histogram {
    uint32_t counts[TEC_COST_BUCKETS];
    int64_t n, min, max;
};

void tec_histogram_add(struct tec_histogram *h, int64_t ns);
/* Quantile q in (0, 1]; the exact maximum for the last sample; 0 when empty. */
int64_t tec_histogram_at(const struct tec_histogram *h, double q);

/* prefill, action, and one decode step at each captured batch. */
struct tec_costs {
    struct tec_histogram prefill, action, decode[TEC_MAX_BATCHES];
    int n_batches, batches[TEC_MAX_BATCHES];
};

void tec_costs_init(struct tec_costs *costs, const struct tec_plan_spec *spec);

/* The histogram of one step of `rows` rows: the smallest captured batch that holds them. */
struct tec_histogram *tec_costs_decode(struct tec_costs *costs, int rows);

#endif
