/* gate_run.h - one simulated run of a policy with everything measured that the gate judges. */
#ifndef TEC_TOOLS_POLICY_GATE_RUN_H
#define TEC_TOOLS_POLICY_GATE_RUN_H

#include "tools/cli/open_engine.h"
#include "tools/simulate/simulator.h"

/* One live request and how long it has waited. */
struct tec_gate_wait {
    int64_t id, since; /* frame count of admission or of its last token */
    bool heard;        /* it has got a token */
};

struct tec_gate_run {
    /* Set by the caller; borrowed. */
    struct tec_invocation *call;
    const char *pipeline, *policy; /* policy: a file or a name */
    struct tec_scenario *scenario;
    const struct tec_cost_table *costs; /* what launches take: its p50 */
    const struct tec_cost_table *seen;  /* what the policy is told; NULL = costs */
    int reload_at; /* call of plan before which a fresh policy takes over by migrate; 0 = none */

    /* The machinery; stays open until finish. */
    struct tec_opened opened;
    struct tec_virtual device[TEC_MAX_CHAINS];
    struct tec_simulator simulator;
    struct tec_policy *reloaded; /* the fresh one, NULL = none yet */
    struct tec_planner inner;    /* of the one that decides */
    struct tec_event_sink told;

    /* The results. */
    bool reload_failed;
    struct tec_error reload_error;
    int n, room;           /* calls of plan, and how many were kept */
    int64_t *plan_ns;      /* [n] CPU time of each; ascending once the run is over */
    uint64_t *digests;     /* [n] of each decision */
    int64_t *indices;      /* [n] number of the frame */
    int64_t *made;         /* [n] allocations of each; those of a failure do not count */
    int64_t failures;      /* failures of the policy up to its last successful call */
    int64_t rows, snapped; /* of all decisions */
    int64_t outside;       /* decisions that are no point of the lattice */
    int64_t count;         /* frames opened */
    int n_waits;
    struct tec_gate_wait waits[TEC_MAX_ROWS];
    int64_t admitted, worst_wait, worst_request;
    int64_t unheard;      /* requests that timed out without a single token */
    int64_t first_missed; /* frame, -1 = none */
    int64_t own_missed; /* misses blamed on the plan, in frames with work that could have waited */
    int last_depth;     /* depth of the ring in the frame before */
    int64_t steady;     /* frames since the depth changed */
};

/* Open pipeline, virtual device and policy, run the scenario. The policy stays open. */
enum tec_status tec_gate_run(struct tec_gate_run *run, struct tec_arena *arena,
                             struct tec_error *err);
void tec_gate_finish(struct tec_gate_run *run); /* zeroed is allowed */

/* Quantile of the time of plan, nearest rank; 0 when it was never called. */
int64_t tec_gate_plan_ns(const struct tec_gate_run *run, double q);

/* The first call of plan in which two runs differ, -1 = none. */
int tec_gate_differs(const struct tec_gate_run *a, const struct tec_gate_run *b);

#endif
