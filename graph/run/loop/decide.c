/* decide.c - the policy's decision for a frame: asked for, told, and ordered into launches. */
#include "graph/run/loop/decide.h"
#include "graph/run/loop/decision.h"
#include "graph/run/loop/pending_prefill.h"
#include "graph/run/loop/requests.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/tell.h"

#include <string.h>

static bool runs(const struct tec_loop *l, int row)
{
    return l->decision.rows[row].k > 0 && !l->decision.rows[row].shed &&
           !tec_loop_awaits(l, &l->requests[row]) &&
           tec_pending_prefill_ready(l, &l->requests[row]) &&
           !tec_loop_leaves_out(l, l->o.decoders[l->requests[row].decoder].node);
}

/* Rows in the order (priority, id); requests are ascending by id already. */
static int sort_rows(const struct tec_loop *l, int *sorted)
{
    int n = 0;
    for (int i = 0; i < l->n_live; i++) {
        if (!runs(l, i))
            continue;
        int at = n++;
        for (; at > 0 && tec_loop_before(l, i, sorted[at - 1]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = i;
    }
    return n;
}

/* Rows of equal group and k stand together, at the place of their first. */
static void order_launches(struct tec_loop *l)
{
    tec_pending_prefill_plan(l);
    int sorted[TEC_MAX_ROWS], n = sort_rows(l, sorted);
    bool taken[TEC_MAX_ROWS] = {false};
    l->n_order = 0;
    for (int i = 0; i < n; i++) {
        const struct tec_row_decision *first = &l->decision.rows[sorted[i]];
        for (int j = i; j < n; j++) {
            const struct tec_row_decision *d = &l->decision.rows[sorted[j]];
            if (taken[j] || d->group != first->group || d->k != first->k ||
                tec_chain_at(l, &l->requests[sorted[i]]) !=
                    tec_chain_at(l, &l->requests[sorted[j]]))
                continue;
            taken[j] = true;
            l->order[l->n_order++] = sorted[j];
        }
    }
}

static void tell_plan(struct tec_loop *l)
{
    int depths[TEC_MAX_RINGS] = {0};
    for (int i = 0; i < l->n_rings; i++)
        depths[i] = tec_ring_depth(l, tec_ring_first(l, i));
    const struct tec_ring_event ring = {.slot = -1,
                                        .base = -1,
                                        .depth = depths[0],
                                        .forwards =
                                            l->n_rings ? tec_ring_forwards(l, &l->rings[0]) : 0,
                                        .depths = depths};
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_PLAN,
                                        .node = -1,
                                        .request = -1,
                                        .t_ns = tec_loop_now(l),
                                        .what = l->record.policy,
                                        .decision = &l->decision,
                                        .view = l->view_rows,
                                        .segments = l->segments,
                                        .n_segments = l->view.n_seg,
                                        .order = l->order,
                                        .n = l->n_order,
                                        .ring = l->n_rings ? &ring : NULL});
}

static int within(int n, int most)
{
    return n < 0 ? 0 : n > most ? most : n;
}

static void tame_ratios(const struct tec_topology *t, struct tec_recompute_decision *r)
{
    r->n = within(r->n, TEC_MAX_LAYERS);
    for (int i = 0; i < r->n; i++)
        r->ratios[i] = tec_ratio_within(t, r->ratios[i], i > 0 ? r->ratios[i - 1] : 1.0);
}

/* A planner in C may have written anything: counts, points and texts without an end stop
 * here. */
static void tame(struct tec_loop *l, struct tec_decision *d)
{
    const struct tec_topology *t = l->o.topology;
    d->n_rows = l->decision.n_rows;
    d->n_notes = within(d->n_notes, TEC_MAX_NOTES);
    d->n_recompute = within(d->n_recompute, TEC_MAX_MEMORIES);
    for (int i = 0; i < d->n_recompute; i++)
        tame_ratios(t, &d->recompute[i]);
    d->n_seg = within(d->n_seg, TEC_MAX_SEGMENTS);
    for (int i = 0; i < d->n_rows; i++) {
        d->rows[i].k = tec_snap_down(t->k, t->n_k, d->rows[i].k);
        d->rows[i].reason[sizeof d->rows[i].reason - 1] = '\0';
    }
    for (int i = 0; i < l->n_rings && l->n_rings <= TEC_MAX_RINGS; i++) {
        int depth = d->depth[i] ? tec_snap_down(t->depth, t->n_depth, d->depth[i]) : d->depth[i];
        depth = depth || !d->depth[i] ? depth : t->n_depth ? t->depth[0] : d->depth[i];
        d->snapped += depth != d->depth[i];
        d->depth[i] = depth;
    }
    for (int i = 0; i < d->n_notes; i++) {
        d->notes[i].key[sizeof d->notes[i].key - 1] = '\0';
        d->notes[i].text[sizeof d->notes[i].text - 1] = '\0';
    }
    for (int i = 0; i < t->n_nodes; i++) {
        if (d->nodes[i].partition >= t->n_partitions)
            d->nodes[i].partition = -1;
        d->nodes[i].reason[sizeof d->nodes[i].reason - 1] = '\0';
        d->nodes[i].slices = within(d->nodes[i].slices, t->nodes[i].slices * TEC_MAX_ROWS);
    }
}

/* Rows that the policy gives up are not there any more when this returns. */
void tec_loop_plan(struct tec_loop *l)
{
    struct tec_error err;
    tec_planner_default(l->o.topology, &l->view, &l->decision);
    if (l->o.planner.plan) {
        int nodes = l->o.topology->n_nodes;
        tec_decision_copy(&l->scratch, &l->decision, nodes);
        if (l->o.planner.plan(l->o.planner.self, &l->view, &l->scratch, &err) == TEC_OK) {
            tame(l, &l->scratch);
            tec_decision_copy(&l->decision, &l->scratch, nodes);
        }
    }
    const char *name = tec_planner_name(&l->o.planner);
    if (!memccpy(l->record.policy, name, '\0', sizeof l->record.policy))
        l->record.policy[sizeof l->record.policy - 1] = '\0';
    l->record.snapped = l->decision.snapped;
    order_launches(l);
    tell_plan(l);
    bool any = false;
    for (int i = 0; i < l->n_live; i++)
        if (l->decision.rows[i].shed && !tec_loop_awaits(l, &l->requests[i])) {
            const char *reason = l->decision.rows[i].reason;
            any = true;
            tec_requests_shed(l, &l->requests[i], reason[0] ? reason : "policy");
        }
    if (!any)
        return;
    tec_requests_sweep(l);
    order_launches(l);
}
