/* account.c - what a frame cost, whether it missed, and why. */
#include "graph/run/state.h"

#include <string.h>

/* A launch of `times` steps at most, of which `steps` were made. What is longer than the p99 known
 * before is the device's. Replays before the first frame only say what to expect. */
static void measure(struct tec_loop *l, enum tec_cost_kind kind, int rows, int times, int steps,
                    int64_t ns)
{
    static const char *const words[TEC_COST_KINDS] = {"prefill", "action", "decode"};
    if (l->table) {
        double known = tec_loop_cost(l, words[kind], rows, 0.99) * 1000.0 * times;
        if (known > 0.0 && (double)ns > known)
            l->device_over_ns += ns - (int64_t)known;
    } else if (steps > 0 && l->warming) {
        tec_costs_warm(&l->costs, kind, rows, ns / steps);
    } else if (steps > 0) {
        l->device_over_ns += tec_costs_add(&l->costs, kind, rows, ns / steps) * steps;
    }
}

/* The device's time, once where launches of two partitions overlap. */
void tec_loop_replayed(struct tec_loop *l, int64_t start, int64_t end)
{
    int64_t from = start > l->replayed_until ? start : l->replayed_until;
    if (end <= from)
        return;
    l->replayed_ns += end - from;
    l->replayed_until = end;
}

void tec_loop_measure_prefix(struct tec_loop *l, const struct tec_replay *r, bool action)
{
    int64_t seen = r->mark_ns[TEC_MARK_PREFILL];
    tec_loop_replayed(l, r->start_ns, r->end_ns);
    measure(l, TEC_COST_PREFILL, 0, 1, 1, seen - r->start_ns);
    if (action)
        measure(l, TEC_COST_ACTION, 0, 1, 1, r->mark_ns[TEC_MARK_ACTION] - seen);
}

/* A launch that ends early, all rows done, made `steps` of k. */
void tec_loop_measure_decode(struct tec_loop *l, const struct tec_replay *r, int rows, int k,
                             int steps)
{
    tec_loop_replayed(l, r->start_ns, r->end_ns);
    measure(l, TEC_COST_DECODE, rows, k, steps, r->end_ns - r->start_ns);
}

/* Device time beyond p99 of frames that ran while this one waited, and of its own. */
static int64_t device_over(const struct tec_loop *l)
{
    int64_t over = l->device_over_ns;
    int n = l->n_recent < TEC_RECENT_FRAMES ? l->n_recent : TEC_RECENT_FRAMES;
    for (int i = 0; i < n; i++)
        if (l->recent[i].end_ns > l->record.tick_ns)
            over += l->recent[i].over_ns;
    return over;
}

/* The first that alone explains the overrun; where only late inputs and the device together do, the
 * larger of them; else the plan. */
static enum tec_cause cause_of(const struct tec_loop *l, int64_t overrun_ns)
{
    int64_t late = l->tick->late_ns, device = device_over(l);
    if (late >= overrun_ns)
        return TEC_CAUSE_INPUT;
    if (device >= overrun_ns)
        return TEC_CAUSE_GPU;
    if (l->record.planner_ns >= overrun_ns)
        return TEC_CAUSE_POLICY;
    if (l->record.host_ns >= overrun_ns)
        return TEC_CAUSE_HOST;
    if (late + device >= overrun_ns)
        return late >= device ? TEC_CAUSE_INPUT : TEC_CAUSE_GPU;
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
    if (l->tick->next_ns != INT64_MAX && r->end_ns - l->tick->next_ns > overrun)
        overrun = r->end_ns - l->tick->next_ns;
    r->missed = overrun > 0;
    r->cause = r->missed ? cause_of(l, overrun) : TEC_CAUSE_NONE;
    r->in_flight = l->n_live;
    r->overrun_us = (overrun + 999) / 1000;
    l->recent[l->n_recent++ % TEC_RECENT_FRAMES] =
        (struct tec_recent){r->end_ns, l->device_over_ns};
    memset(&l->result, 0, sizeof l->result);
    l->result.total_us = (r->end_ns - r->start_ns) / 1000;
    l->result.overrun_us = r->overrun_us;
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
