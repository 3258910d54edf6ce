/* account.c - what a frame cost, whether it missed, and why. */
#include "graph/run/state.h"

#include <string.h>

/* Replays before the first frame only say what to expect. */
static void measure(struct tec_loop *l, enum tec_cost_kind kind, int rows, int64_t ns, int steps)
{
    if (l->warming)
        tec_costs_warm(&l->costs, kind, rows, ns / steps);
    else
        l->device_over_ns += tec_costs_add(&l->costs, kind, rows, ns / steps) * steps;
}

void tec_loop_measure_prefix(struct tec_loop *l, const struct tec_replay *r, bool action)
{
    l->replayed_ns += r->end_ns - r->start_ns;
    measure(l, TEC_COST_PREFILL, 0, r->mark_ns[TEC_MARK_PREFILL] - r->start_ns, 1);
    if (action)
        measure(l, TEC_COST_ACTION, 0, r->mark_ns[TEC_MARK_ACTION] - r->mark_ns[TEC_MARK_PREFILL],
                1);
}

void tec_loop_measure_decode(struct tec_loop *l, const struct tec_replay *r, int rows, int steps)
{
    l->replayed_ns += r->end_ns - r->start_ns;
    if (steps > 0)
        measure(l, TEC_COST_DECODE, rows, r->end_ns - r->start_ns, steps);
}

/* The first of gpu, host that alone explains the overrun, else the plan. */
static enum tec_cause cause_of(const struct tec_loop *l, int64_t overrun_ns)
{
    if (l->device_over_ns >= overrun_ns)
        return TEC_CAUSE_GPU;
    if (l->record.planner_ns >= overrun_ns)
        return TEC_CAUSE_POLICY;
    if (l->record.host_ns >= overrun_ns)
        return TEC_CAUSE_HOST;
    return TEC_CAUSE_PLAN;
}

void tec_loop_account(struct tec_loop *l)
{
    struct tec_frame_record *r = &l->record;
    int64_t overrun = 0;
    tec_costs_end_frame(&l->costs);
    r->host_ns = r->end_ns - r->start_ns - l->replayed_ns;
    if (r->release_ns >= 0 && r->deadline_ns >= 0 && r->release_ns > r->deadline_ns)
        overrun = r->release_ns - r->deadline_ns;
    if (l->o.period_ns && r->end_ns - (r->tick_ns + l->o.period_ns) > overrun)
        overrun = r->end_ns - (r->tick_ns + l->o.period_ns);
    r->missed = overrun > 0;
    r->cause = r->missed ? cause_of(l, overrun) : TEC_CAUSE_NONE;
    r->in_flight = l->n_live;
    memset(&l->result, 0, sizeof l->result);
    l->result.total_us = (r->end_ns - r->start_ns) / 1000;
    l->result.overrun_us = overrun / 1000;
    l->result.missed = r->missed;
    l->result.cause = r->cause;
    l->result.tokens = r->tokens;
    l->result.rows = r->rows;
    l->result.snapped = r->snapped;
    l->result.n_nodes = l->o.topology->n_nodes;
    for (int i = 0; i < r->n_launches; i++)
        for (int n = 0; n < l->o.topology->n_nodes; n++)
            if (strcmp(l->o.topology->nodes[n].name, r->launches[i].node) == 0)
                l->result.node_us[n] += (r->launches[i].end_ns - r->launches[i].start_ns) / 1000;
}
