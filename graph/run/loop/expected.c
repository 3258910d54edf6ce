/* expected.c - what launches are expected to take: as measured, or by a table. */
#include "graph/run/loop/expected.h"
#include "graph/nodes/node.h"
#include "graph/run/loop/ring_facts.h"

#include <math.h>
#include <string.h>

/* A word that costs are asked for by: a node's name, or a kind. */
struct asked {
    const char *what, *kind;
    int node, chain; /* node -1: it is a kind */
};

/* A kind means that of the frames' model, and "decode" where that has none that of the next. */
static struct asked asked_of(const struct tec_loop *l, const char *what)
{
    const struct tec_topology *t = l->o.topology;
    int node = tec_topology_find(t, what), chain = 0;
    if (node >= 0)
        return (struct asked){what, t->nodes[node].kind, node, t->nodes[node].model};
    if (tec_costs_kind_of(what) == TEC_COST_DECODE)
        while (chain < l->o.n_chains - 1 && l->chains[chain].language < 0)
            chain++;
    return (struct asked){what, what, -1, chain};
}

static int rows_of(double point)
{
    return point > 0.0 && point < 1e6 ? (int)point : 0;
}

/* Is it what a ring's launch is called? */
static bool is_launch(const struct tec_loop *l, const char *what)
{
    bool any = false;
    for (int i = 0; i < l->n_rings; i++)
        any |= strcmp(what, tec_ring_first(l, i)->packed) == 0 ||
               strcmp(what, tec_ring_first(l, i)->alone) == 0;
    return any;
}

/* What kind of costs are meant; a memory's are those of the prompt it recalls. */
static enum tec_cost_kind cost_kind(const struct asked *a)
{
    return tec_costs_kind_of(tec_node_recalls(a->kind) ? "prefill" : a->kind);
}

/* Is it a prompt in one launch: the prefill of one observation, or what recalls it? */
static bool is_prompt(const struct tec_loop *l, const struct asked *a, int rows)
{
    const struct tec_topology *t = l->o.topology;
    int node = l->chains[a->chain].prefill_node;
    return node >= 0 && (tec_node_recalls(a->kind) ||
                         (rows == 0 && (strcmp(a->what, t->nodes[node].name) == 0 ||
                                        strcmp(a->what, t->nodes[node].kind) == 0)));
}

/* The table names nodes: a kind means its first node. A row of a prefill in other slices than ours
 * is shared out to ours. */
static double table_cost(const struct tec_loop *l, const struct asked *a, int rows, double q)
{
    const struct tec_topology *t = l->o.topology;
    const struct tec_chain *s = &l->chains[a->chain];
    bool launch = is_launch(l, a->what) && a->node < 0 && !(s->ring && s->language < 0);
    const struct tec_cost_row *row = launch ? NULL : tec_costs_table_row(l->table, a->what, rows);
    if (is_prompt(l, a, rows))
        row = tec_costs_prompt_row(l->table, t, a->chain, t->nodes[s->prefill_node].name, rows);
    for (int i = 0; !row && i < t->n_nodes; i++)
        if (t->nodes[i].model == a->chain && strcmp(t->nodes[i].kind, a->what) == 0)
            row = tec_costs_table_row(l->table, t->nodes[i].name, rows);
    if (!row)
        return -1.0;
    bool sliced = !s->in_frames && cost_kind(a) == TEC_COST_PREFILL;
    return tec_costs_row_us(row, q) * (sliced ? tec_costs_row_share(row, s->slices) : 1.0);
}

/* Which of its chain's action nodes is called so; 0: none is. */
static int action_at(const struct tec_loop *l, const char *what)
{
    for (int i = 0; i < l->o.n_actions; i++)
        if (strcmp(l->o.actions[i].name, what) == 0)
            return l->o.actions[i].at;
    return 0;
}

/* Cost of one launch; for a sliced prefill, the cost of a single slice. Negative: unknown. */
static double launch_cost(const struct tec_loop *l, const struct asked *a, int rows, double q)
{
    if (l->table)
        return table_cost(l, a, rows, q);
    const struct tec_costs *costs = l->chains[a->chain].costs;
    enum tec_cost_kind kind = cost_kind(a);
    if (kind == TEC_COST_ACTION)
        rows = tec_costs_action(costs, action_at(l, a->what), rows);
    return kind < TEC_COST_KINDS ? tec_costs_us(costs, kind, rows, q) : -1.0;
}

double tec_loop_ring_cost(const struct tec_loop *l, const struct tec_ring_state *ring,
                          enum tec_cost_kind kind, int n, double q)
{
    if (!l->table)
        return tec_costs_us(ring->chain->costs, kind, n, q);
    if (kind == TEC_COST_SHIFT) {
        double bytes = 2.0 * (double)tec_kv_token_bytes(&ring->chain->plan->space.shape);
        return l->table->copy_bytes_per_us > 0.0 ? bytes / l->table->copy_bytes_per_us : 0.0;
    }
    const struct tec_cost_row *row =
        tec_costs_table_row(l->table, kind == TEC_COST_PACKED ? ring->packed : ring->alone, n);
    return row ? tec_costs_row_us(row, q) : 0.0;
}

/* Forward `at` of a steady frame of the rings that share a plan, one of each of so many sessions,
 * and what is moved behind it: what is moved inside is part of its time. */
static double forward_cost(const struct tec_loop *l, const struct tec_ring_state *first,
                           const int *depths, int sessions, int at, double q)
{
    const struct tec_plan_spec *s = &first->chain->plan->spec;
    int rows = 0, enter = 0;
    double moved = 0.0;
    for (int i = 0; i < l->n_rings; i++) {
        if (tec_ring_first(l, i)->chain->plan != first->chain->plan ||
            at >= tec_stages_forwards(s->stages, depths[i]))
            continue;
        rows += sessions * tec_stages_rows(s->stages, depths[i], at);
        enter += at == 0 ? sessions : 0;
        moved += sessions * (double)tec_stages_moved(s->stages, depths[i], at, s->frame_tokens);
    }
    if (rows + enter == 0)
        return 0.0;
    double us = 0.0;
    if (s->apart) {
        us = enter * tec_loop_launch_cost(l, first->chain, TEC_COST_PREFILL, 0, q);
        rows += enter;
        enter = 0;
    }
    us += enter ? tec_loop_ring_cost(l, first, TEC_COST_PACKED,
                                     tec_launch_ring_point(s, enter, rows), q)
                : tec_loop_ring_cost(l, first, TEC_COST_DECODE, rows, q);
    bool behind = s->shifts && (l->table || !first->chain->executor->shifts);
    return us + (behind ? moved * tec_loop_ring_cost(l, first, TEC_COST_SHIFT, 0, q) : 0.0);
}

double tec_loop_rings_cost(const struct tec_loop *l, const int *depths, int sessions, double q)
{
    double us = 0.0;
    for (int i = 0; i < l->n_rings; i++) {
        const struct tec_ring_state *ring = tec_ring_first(l, i);
        bool first = true;
        for (int k = 0; k < i; k++)
            first &= tec_ring_first(l, k)->chain->plan != ring->chain->plan;
        for (int at = 0; first && at < ring->chain->plan->spec.stages; at++)
            us += forward_cost(l, ring, depths, sessions, at, q);
    }
    return us;
}

/* The same, all of them so deep where they can be. */
static double packed_cost(const struct tec_loop *l, int depth, double q)
{
    int depths[TEC_MAX_RINGS];
    for (int i = 0; i < l->n_rings; i++) {
        int stages = tec_ring_first(l, i)->chain->plan->spec.stages;
        depths[i] = depth < 1 ? 1 : depth > stages ? stages : depth;
    }
    return tec_loop_rings_cost(l, depths, l->n_own, q);
}

double tec_loop_launch_cost(const struct tec_loop *l, const struct tec_chain *c,
                            enum tec_cost_kind kind, int rows, double q)
{
    struct asked a = asked_of(l, tec_cost_words[kind]);
    int node = kind == TEC_COST_PREFILL ? c->prefill_node : c->language;
    int each = c->costs->n_actions;
    int n = kind == TEC_COST_ACTION && rows >= each ? c->costs->together[rows / each] : 0;
    if ((!c->in_frames || &l->chains[a.chain] != c) && node >= 0)
        a = asked_of(l, l->o.topology->nodes[node].name);
    for (int i = 0; kind == TEC_COST_ACTION && i < l->o.n_actions; i++)
        if (&l->chains[l->o.actions[i].chain] == c && l->o.actions[i].at == rows % each) {
            a = asked_of(l, l->o.actions[i].name);
            return launch_cost(l, &a, n, q);
        }
    return launch_cost(l, &a, rows, q);
}

/* Of several sessions in one launch of a hard node; 0 = of one. */
static int observations(const struct tec_costs *costs, enum tec_cost_kind kind, int rows)
{
    bool hard = kind == TEC_COST_PREFILL || kind == TEC_COST_ACTION;
    return hard && rows > 1 && costs->n_together > 1 ? rows : 0;
}

/* A prompt of a memory with that share of its segments computed anew, in all its slices. */
static double recall_cost(const struct tec_loop *l, const struct asked *a, double share, double q)
{
    int percent = share > 0.0 && share <= 1.0 ? (int)ceil(share * 100.0 - 1e-9) : 0;
    const struct tec_chain *c = &l->chains[a->chain];
    return launch_cost(l, a, l->table ? percent : 0, q) * (c->in_frames ? 1 : c->slices);
}

/* More rows than the largest captured batch are several launches, full ones first; a prefill in
 * slices is all of them, or as many as the point says. */
double tec_loop_cost_of(const void *self, const char *what, double point, double q)
{
    const struct tec_loop *l = self;
    const struct asked a = asked_of(l, what);
    const struct tec_chain *c = &l->chains[a.chain];
    const struct tec_costs *costs = c->costs;
    enum tec_cost_kind kind = tec_costs_kind_of(a.kind);
    int rows = rows_of(point), n = costs->n_batches;
    if (strcmp(what, "packed") == 0 && (l->n_rings || a.node < 0))
        return l->n_rings ? packed_cost(l, rows, q) : -1.0;
    if (tec_node_recalls(a.kind))
        return recall_cost(l, &a, point, q);
    if (!c->in_frames && kind == TEC_COST_PREFILL)
        return launch_cost(l, &a, 0, q) * (rows ? rows : c->slices);
    if (n == 0 || kind != TEC_COST_DECODE)
        return launch_cost(l, &a, observations(costs, kind, rows), q);
    int largest = costs->batches[n - 1], full = rows / largest;
    int rest = tec_snap_up(costs->batches, n, rows - full * largest);
    double us = full > 0 ? full * launch_cost(l, &a, largest, q) : 0.0;
    return full > 0 && rows == full * largest ? us : us + launch_cost(l, &a, rest, q);
}
