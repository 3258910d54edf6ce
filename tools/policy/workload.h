/* workload.h - what the gate lets happen to a policy: more requests than there are request slots,
 * then late inputs, slow launches and cancellations besides. The same seed makes the same workload.
 */
#ifndef TEC_TOOLS_POLICY_WORKLOAD_H
#define TEC_TOOLS_POLICY_WORKLOAD_H

#include "graph/run/launch/planner.h"
#include "tools/simulate/scenario.h"

struct tec_workload {
    const struct tec_topology *topology;
    const struct tec_cost_table *costs;
    int frames;
    int max_tokens; /* of a request */
    bool paced;
    uint64_t seed;
};

/* Make a scenario in the arena: bursts that exceed the request slots, requests of random length and
 * priority in between; most lengths are shorter than max_tokens. */
enum tec_status tec_workload_stress(struct tec_scenario *out, const struct tec_workload *work,
                                    struct tec_arena *arena, struct tec_error *err);

/* Make the stress scenario with disturbances in one frame of eight: inputs late by up to one and a
 * half periods, a launch of some node twice as long as its table says, a cancelled request. For a
 * fifth of the time all costs are up to twice as high, as far as hard work still fits, and policies
 * are told. Of a ring one frame in sixteen has no observation. */
enum tec_status tec_workload_chaos(struct tec_scenario *out, const struct tec_workload *work,
                                   struct tec_arena *arena, struct tec_error *err);

/* Microseconds at p99 of a frame's mandatory work: all nodes but language, or a full ring's frame
 * at its deepest captured depth. */
double tec_workload_hard_us(const struct tec_cost_table *costs,
                            const struct tec_topology *topology);

/* Make a table in which every launch takes its p99 time. */
enum tec_status tec_workload_at_p99(struct tec_cost_table *out, const struct tec_cost_table *from,
                                    struct tec_arena *arena, struct tec_error *err);

#endif
