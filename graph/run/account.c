/* account.c - what a frame cost, whether it missed, and why. */
#include "graph/run/state.h"

#include <string.h>

/* Time beyond the p99 that was known before the launch. */
static void watch(struct tec_loop *l, const char *what, int rows, int times, int64_t ns)
{
    double known = tec_loop_cost(l, what, rows, 0.99) * 1000.0 * times;
    if (known > 0.0 && (double)ns > known)
        l->device_over_ns += ns - (int64_t)known;
}

static void add(struct tec_loop *l, struct tec_histogram *h, int64_t ns)
{
    if (!l->table)
        tec_histogram_add(h, ns);
}

/* The device's time, once where launches of two partitions overlap. */
static void add_replayed(struct tec_loop *l, int64_t start, int64_t end)
{
    int64_t from = start > l->replayed_until ? start : l->replayed_until;
    if (end <= from)
        return;
    l->replayed_ns += end - from;
    l->replayed_until = end;
}

void tec_loop_measure_prefix(struct tec_loop *l, const struct tec_replay *r, bool action)
{
    int64_t prefill = r->mark_ns[TEC_MARK_PREFILL] - r->start_ns;
    add_replayed(l, r->start_ns, r->end_ns);
    watch(l, "prefill", 0, 1, prefill);
    add(l, &l->costs.prefill, prefill);
    if (!action)
        return;
    int64_t acted = r->mark_ns[TEC_MARK_ACTION] - r->mark_ns[TEC_MARK_PREFILL];
    watch(l, "action", 0, 1, acted);
    add(l, &l->costs.action, acted);
}

/* A launch that ends early, all rows done, made `steps` of k. */
void tec_loop_measure_decode(struct tec_loop *l, const struct tec_replay *r, int rows, int k,
                             int steps)
{
    int64_t ns = r->end_ns - r->start_ns;
    add_replayed(l, r->start_ns, r->end_ns);
    watch(l, "decode", rows, k, ns);
    if (steps > 0)
        add(l, tec_costs_decode(&l->costs, rows), ns / steps);
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
    r->host_ns = r->end_ns - r->start_ns - l->replayed_ns;
    if (r->release_ns >= 0 && r->deadline_ns >= 0 && r->release_ns > r->deadline_ns)
        overrun = r->release_ns - r->deadline_ns;
    if (l->tick->next_ns != INT64_MAX && r->end_ns - l->tick->next_ns > overrun)
        overrun = r->end_ns - l->tick->next_ns;
    r->missed = overrun > 0;
    r->cause = r->missed ? cause_of(l, overrun) : TEC_CAUSE_NONE;
    r->in_flight = l->n_live;
    r->overrun_us = overrun / 1000;
    l->recent[l->n_recent++ % TEC_RECENT_FRAMES] =
        (struct tec_recent){r->end_ns, l->device_over_ns};
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
