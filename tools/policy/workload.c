/* workload.c - makes the workloads of the gate from a seed: more requests than there are request
 * slots, and for chaos also late inputs, slow launches and cancellations. */
#include "tools/policy/workload.h"

#include "graph/kv/stages.h"
#include "graph/nodes/node.h"
#include "graph/run/loop/costs.h"

#include <string.h>

enum { BURST_EVERY = 61, ARRIVALS_A_FRAME = 3, LISTS = 4 };

/* A random stream that differs for each seed (Steele, Lea, Flood 2014). */
struct draw {
    uint64_t state;
};

static uint64_t below(struct draw *d, uint64_t n)
{
    uint64_t x = d->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % n;
}

static enum tec_status make(struct tec_happenings *list, size_t room, struct tec_arena *arena,
                            struct tec_error *err)
{
    list->n = 0;
    list->item = TEC_NEW(arena, room, struct tec_happening);
    return list->item ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a workload");
}

static struct tec_happening *add(struct tec_happenings *list, int64_t frame)
{
    struct tec_happening *h = &list->item[list->n++];
    *h = (struct tec_happening){.frame = frame, .session = -1};
    return h;
}

static const char *some_node(const struct tec_topology *t, const char *kind, struct draw *d)
{
    const char *names[TEC_MAX_NODES];
    int n = 0;
    for (int i = 0; i < t->n_nodes; i++)
        if (!kind || (strcmp(t->nodes[i].kind, kind) == 0 && tec_topology_decodes(t, i)))
            names[n++] = t->nodes[i].name;
    return n ? names[below(d, (uint64_t)n)] : NULL;
}

static void ask(struct tec_happenings *list, const struct tec_workload *w, int64_t frame,
                struct draw *d)
{
    struct tec_happening *h = add(list, frame);
    h->value = below(d, 4) ? 1 + (int64_t)below(d, (uint64_t)w->max_tokens) : w->max_tokens;
    h->prio = below(d, 8) ? 0 : (int)below(d, 4);
    h->name = some_node(w->topology, "decode", d);
}

static bool talks(const struct tec_topology *t)
{
    for (int i = 0; i < t->n_nodes; i++) /* a ring's decode node makes actions, not text */
        if (strcmp(t->nodes[i].kind, "decode") == 0 && tec_topology_decodes(t, i))
            return true;
    return false;
}

enum tec_status tec_workload_stress(struct tec_scenario *out, const struct tec_workload *work,
                                    struct tec_arena *arena, struct tec_error *err)
{
    struct draw d = {work->seed};
    int burst = work->topology->slots + 2;
    size_t bursts = (size_t)work->frames / BURST_EVERY + 1;
    tec_scenario_default(out);
    out->paced = work->paced;
    out->frames = work->frames;
    TEC_TRY(make(&out->arrivals,
                 bursts * (size_t)burst + (size_t)work->frames * ARRIVALS_A_FRAME + 1, arena, err));
    for (int f = 0; f < work->frames && talks(work->topology) && work->max_tokens > 0; f++) {
        uint64_t n = below(&d, 2) ? below(&d, ARRIVALS_A_FRAME) : 0;
        n = f % BURST_EVERY == 0 ? (uint64_t)burst : n;
        for (uint64_t i = 0; i < n; i++)
            ask(&out->arrivals, work, f, &d);
    }
    return TEC_OK;
}

static enum tec_status scaled(struct tec_cost_table *out, const struct tec_cost_table *from,
                              double by, struct tec_arena *arena, struct tec_error *err)
{
    *out = *from;
    out->rows = TEC_NEW(arena, (size_t)from->n_rows + 1, struct tec_cost_row);
    if (!out->rows)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a table of costs");
    for (int i = 0; i < from->n_rows; i++) {
        struct tec_cost_row *r = &out->rows[i];
        *r = from->rows[i];
        r->min *= by;
        r->p50 *= by;
        r->p99 *= by;
        r->p999 *= by;
        r->max *= by;
    }
    return TEC_OK;
}

enum tec_status tec_workload_at_p99(struct tec_cost_table *out, const struct tec_cost_table *from,
                                    struct tec_arena *arena, struct tec_error *err)
{
    TEC_TRY(scaled(out, from, 1.0, arena, err));
    for (int i = 0; i < out->n_rows; i++)
        out->rows[i].min = out->rows[i].p50 = out->rows[i].p99;
    return TEC_OK;
}

/* A spike happens once for each launch: that of a decode lasts as many steps as the smallest k
 * has. */
static void spike(struct tec_scenario *out, const struct tec_workload *w, int64_t frame,
                  struct draw *d)
{
    const char *node = w->topology->n_rings ? "packed" : some_node(w->topology, NULL, d);
    int most = w->topology->n_batch ? w->topology->batch[w->topology->n_batch - 1] : 0;
    const struct tec_cost_row *row = tec_costs_table_row(w->costs, node, most);
    struct tec_happening *h = add(&out->spikes, frame);
    h->name = node;
    h->value = row ? (int64_t)row->p50 : 0;
    if (row && row->point > 0 && w->topology->n_k && !w->topology->n_rings)
        h->value *= w->topology->k[0];
}

/* The shortest steady frame of a ring, which is that of its deepest captured depth. */
static double ring_us(const struct tec_cost_table *costs, const struct tec_topology *t)
{
    int depth = t->n_depth ? t->depth[t->n_depth - 1] : t->rings[0].stages;
    double us = 0;
    for (int i = 0; i < tec_stages_forwards(t->rings[0].stages, depth); i++) {
        const struct tec_cost_row *row = tec_costs_table_row(
            costs, i ? "decode" : "packed", tec_stages_rows(t->rings[0].stages, depth, i));
        us += row ? tec_costs_row_us(row, 0.99) : 0;
    }
    return us;
}

double tec_workload_hard_us(const struct tec_cost_table *costs, const struct tec_topology *t)
{
    double us = 0;
    if (t->n_rings)
        return ring_us(costs, t);
    for (int i = 0; i < t->n_nodes; i++) {
        bool prompt = strcmp(t->nodes[i].kind, "prefill") == 0;
        const struct tec_cost_row *row =
            prompt ? tec_costs_prompt_row(costs, t, t->nodes[i].model, t->nodes[i].name, 0)
                   : tec_costs_table_row(costs, t->nodes[i].name, 1);
        if (t->nodes[i].steps && row)
            us += t->nodes[i].steps * tec_costs_row_us(row, 0.99);
        else if (strcmp(t->nodes[i].kind, "decode") != 0 && tec_node_timed(t->nodes[i].kind) && row)
            us += tec_costs_row_us(row, 0.99);
    }
    return us;
}

/* The factor of slow launches: 2, or the factor that leaves the nodes other than language a
 * twentieth of their time. */
static double slowness(const struct tec_workload *w)
{
    const struct tec_topology *t = w->topology;
    double hard = tec_workload_hard_us(w->costs, t), limit = w->paced ? (double)t->period_us : 1e12;
    for (int i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].hard && t->nodes[i].deadline_us && (double)t->nodes[i].deadline_us < limit)
            limit = (double)t->nodes[i].deadline_us;
    double most = hard > 0 ? 0.95 * limit / hard : 2.0;
    return most < 1.0 ? 1.0 : most > 2.0 ? 2.0 : most;
}

/* Add stretches of higher costs, each a tenth of the run. */
static enum tec_status slow_down(struct tec_scenario *out, const struct tec_workload *w,
                                 struct tec_arena *arena, struct tec_error *err)
{
    struct tec_cost_table slow;
    TEC_TRY(make(&out->costs_from, LISTS, arena, err));
    TEC_TRY(scaled(&slow, w->costs, slowness(w), arena, err));
    for (int i = 0; i < LISTS; i++) {
        int tenth = i < 2 ? 3 + i : 5 + i; /* from 3/10 to 4/10, and from 7/10 to 8/10 */
        add(&out->costs_from, (int64_t)w->frames * tenth / 10)->costs = i % 2 ? *w->costs : slow;
    }
    return TEC_OK;
}

enum tec_status tec_workload_chaos(struct tec_scenario *out, const struct tec_workload *work,
                                   struct tec_arena *arena, struct tec_error *err)
{
    struct draw d = {work->seed ^ 0xc4a05u};
    size_t room = (size_t)work->frames + 1;
    TEC_TRY(tec_workload_stress(out, work, arena, err));
    TEC_TRY(make(&out->late, room, arena, err));
    TEC_TRY(make(&out->spikes, room, arena, err));
    TEC_TRY(make(&out->cancel, room, arena, err));
    TEC_TRY(make(&out->missing, room, arena, err));
    int64_t latest = work->topology->period_us * 3 / 2;
    for (int f = 0; f < work->frames; f++) {
        if (below(&d, 8) == 0)
            add(&out->late, f)->value = 1 + (int64_t)below(&d, (uint64_t)latest + 1);
        if (below(&d, 8) == 0)
            spike(out, work, f, &d);
        if (work->topology->n_rings && below(&d, 16) == 0)
            add(&out->missing, f);
        if (below(&d, 8) == 0)
            add(&out->cancel, f)->value = (int64_t)below(&d, (uint64_t)f + 1);
    }
    return slow_down(out, work, arena, err);
}
