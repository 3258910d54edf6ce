/* decision.c - copies and compares decisions.
 *
 * Frame thread. A decision has room for every possible row, node and segment and is mostly empty,
 * so both functions touch only the entries that are in use. */
#include "graph/run/launch/planner.h"

#include <string.h>

void tec_decision_copy(struct tec_decision *to, const struct tec_decision *from, int n_nodes)
{
    to->n_rows = from->n_rows;
    memcpy(to->rows, from->rows, (size_t)from->n_rows * sizeof to->rows[0]);
    memcpy(to->nodes, from->nodes, (size_t)n_nodes * sizeof to->nodes[0]);
    memcpy(to->depth, from->depth, sizeof to->depth);
    to->snapped = from->snapped;
    to->source = from->source;
    to->n_notes = from->n_notes;
    memcpy(to->notes, from->notes, (size_t)from->n_notes * sizeof to->notes[0]);
    to->n_recompute = from->n_recompute;
    for (int i = 0; i < from->n_recompute; i++) {
        const struct tec_recompute_decision *r = &from->recompute[i];
        to->recompute[i].node = r->node;
        to->recompute[i].n = r->n;
        to->recompute[i].audit = r->audit;
        memcpy(to->recompute[i].ratios, r->ratios, (size_t)r->n * sizeof r->ratios[0]);
    }
    to->n_seg = from->n_seg;
    memcpy(to->seg, from->seg, (size_t)from->n_seg * sizeof to->seg[0]);
}

static bool same_rows(const struct tec_decision *a, const struct tec_decision *b)
{
    for (int i = 0; i < a->n_rows; i++) {
        const struct tec_row_decision *x = &a->rows[i], *y = &b->rows[i];
        if (x->k != y->k || x->group != y->group || x->priority != y->priority ||
            x->unshare != y->unshare || x->shed != y->shed)
            return false;
    }
    return true;
}

static bool same_recompute(const struct tec_recompute_decision *a,
                           const struct tec_recompute_decision *b)
{
    bool same = a->node == b->node && a->n == b->n && a->audit == b->audit;
    for (int i = 0; same && i < a->n; i++)
        same = a->ratios[i] == b->ratios[i];
    return same;
}

static bool same_memory(const struct tec_decision *a, const struct tec_decision *b)
{
    if (a->n_recompute != b->n_recompute || a->n_seg != b->n_seg)
        return false;
    for (int i = 0; i < a->n_recompute; i++)
        if (!same_recompute(&a->recompute[i], &b->recompute[i]))
            return false;
    for (int i = 0; i < a->n_seg; i++)
        if (a->seg[i].skip != b->seg[i].skip || a->seg[i].score != b->seg[i].score)
            return false;
    return true;
}

bool tec_decision_same(const struct tec_decision *a, const struct tec_decision *b, int n_nodes)
{
    if (a->n_rows != b->n_rows || memcmp(a->depth, b->depth, sizeof a->depth) != 0)
        return false;
    for (int i = 0; i < n_nodes; i++)
        if (a->nodes[i].skip != b->nodes[i].skip || a->nodes[i].priority != b->nodes[i].priority ||
            a->nodes[i].partition != b->nodes[i].partition ||
            a->nodes[i].slices != b->nodes[i].slices)
            return false;
    return same_rows(a, b) && same_memory(a, b);
}
