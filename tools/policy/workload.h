/* workload.h - what the gate lets happen to a policy: more requests than there are request slots,
 * then late inputs, slow launches and cancellations besides. The same seed makes the same workload.
 */
#ifndef TEC_TOOLS_POLICY_WORKLOAD_H
#define TEC_TOOLS_POLICY_WORKLOAD_H

#include "graph/run/planner.h"
#include "tools/simulate/scenario.h"

struct tec_workload {
    const struct tec_topology *topology;
    const struct tec_cost_table *costs;
    int frames;
    int max_tokens; /* of a request */
    bool paced;
    uint64_t seed;
};

/* Bursts beyond all request slots, requests of any length and priority in between; most lengths are
 * short of max_tokens. In the arena. */
enum tec_status tec_workload_stress(struct tec_scenario *out, const struct tec_workload *work,
                                    struct tec_arena *arena, struct tec_error *err);

/* The same, and one frame in eight: inputs late by up to one and a half periods, a launch of some
 * node twice as long as its table says, a request cancelled; a fifth of the time all costs are
 * higher, up to twice and as far as hard work still fits; policies are told so. Of a ring one frame
 * in sixteen has no observation. */
enum tec_status tec_workload_chaos(struct tec_scenario *out, const struct tec_workload *work,
                                   struct tec_arena *arena, struct tec_error *err);

/* Microseconds at p99 of what a frame has to do: of nodes that are no language, or of a full ring's
 * frame at its deepest captured depth. */
double tec_workload_hard_us(const struct tec_cost_table *costs,
                            const struct tec_topology *topology);

/* A table in which every launch takes what it took at p99. */
enum tec_status tec_workload_at_p99(struct tec_cost_table *out, const struct tec_cost_table *from,
                                    struct tec_arena *arena, struct tec_error *err);

#endif
