/* view.c - what policies see of a frame: requests, caches, costs and the slack. */
#include "graph/run/state.h"

#include <string.h>

static int64_t token_bytes(const struct tec_loop *l)
{
    return tec_kv_token_bytes(&l->o.plan->space.shape);
}

struct tec_request_view tec_loop_view_of(const struct tec_loop *l, const struct tec_request *r)
{
    int64_t now = tec_loop_now(l);
    bool limited = r->deadline_ns != INT64_MAX;
    return (struct tec_request_view){
        .id = r->id,
        .node = l->o.decoders[r->decoder].node,
        .left = r->max - r->made,
        .done = r->made,
        .max = r->max,
        .age_frames = (int)(l->tick->frame - r->born_frame),
        .born_us = r->born_ns / 1000,
        .deadline_us = limited ? r->deadline_ns / 1000 : INT64_MAX,
        .slack_us = limited ? (r->deadline_ns - now) / 1000 : INT64_MAX,
        .prio = r->prio,
        .kv_bytes = (int64_t)(r->row.prefix + r->own + r->made) * token_bytes(l),
        .shared = r->shared,
        .fresh = !r->stored};
}

/* Of the frame's caches `pinned` are those that live requests still read, the age is that of the
 * oldest of these requests. */
static void view_caches(struct tec_loop *l)
{
    if (l->o.ring) {
        l->kv[0].used = l->kv[0].pinned = tec_ring_used(l); /* the only cache there is */
        l->kv[0].oldest = l->ring.n ? l->ring.turn - l->ring.items[0].turn : 0;
        l->kv[0].bytes = l->kv[0].used * token_bytes(l);
        return;
    }
    const struct tec_kv_pool *prefixes = &l->o.plan->prefixes;
    int64_t oldest = 0, made = 0, stored = 0;
    for (int i = 0; i < l->n_live; i++) {
        int64_t age = l->tick->frame - l->requests[i].born_frame;
        oldest = age > oldest ? age : oldest;
        made += l->requests[i].own + l->requests[i].made;
        stored += l->requests[i].stored;
    }
    l->kv[0].used = (int64_t)prefixes->in_use * prefixes->tokens;
    l->kv[0].pinned = (stored < prefixes->in_use ? stored : prefixes->in_use) * prefixes->tokens;
    l->kv[1].used = l->kv[1].pinned = made;
    l->kv[0].oldest = l->kv[1].oldest = oldest;
    for (int i = 0; i < l->view.n_kv; i++)
        l->kv[i].bytes = l->kv[i].used * token_bytes(l);
}

void tec_loop_view(struct tec_loop *l)
{
    for (int i = 0; i < l->n_live; i++)
        l->view_rows[i] = tec_loop_view_of(l, &l->requests[i]);
    view_caches(l);
    l->view.n_req = l->n_live;
    l->view.index = l->tick->frame;
    l->view.now_us = tec_loop_now(l) / 1000;
    l->view.deadline_us = l->record.deadline_ns >= 0 ? l->record.deadline_ns / 1000 : INT64_MAX;
    l->view.budget_us =
        l->record.deadline_ns >= 0 ? l->view.deadline_us - l->view.now_us : INT64_MAX;
    l->view.last = l->result;
    for (int i = 0; i < l->view.n_inputs; i++)
        l->late_us[i] = l->tick->late_ns / 1000;
}

/* --- costs ---------------------------------------------------------------------------------- */

static const char *kind_of(const struct tec_topology *t, const char *what)
{
    for (int i = 0; i < t->n_nodes; i++)
        if (strcmp(t->nodes[i].name, what) == 0)
            return t->nodes[i].kind;
    return what;
}

static bool names(const struct tec_topology *t, const char *what)
{
    for (int i = 0; i < t->n_nodes; i++)
        if (strcmp(t->nodes[i].name, what) == 0)
            return true;
    return false;
}

static int rows_of(double point)
{
    return point > 0.0 && point < 1e6 ? (int)point : 0;
}

/* The table names nodes: a kind means its first node. */
static double table_cost(const struct tec_loop *l, const char *what, int rows, double q)
{
    const struct tec_topology *t = l->o.topology;
    const struct tec_cost_row *row = tec_cost_table_row(l->table, what, rows);
    for (int i = 0; !row && i < t->n_nodes; i++)
        if (strcmp(t->nodes[i].kind, what) == 0)
            row = tec_cost_table_row(l->table, t->nodes[i].name, rows);
    return row ? tec_cost_row_us(row, q) : -1.0;
}

static double launch_cost(const struct tec_loop *l, const char *what, int rows, double q)
{
    if (l->table)
        return table_cost(l, what, rows, q);
    enum tec_cost_kind kind = tec_cost_kind_of(kind_of(l->o.topology, what));
    return kind < TEC_COST_KINDS ? tec_costs_us(&l->costs, kind, rows, q) : -1.0;
}

/* A launch of a ring: by its own name in a table, where it belongs to no one node. */
static double ring_cost(const struct tec_loop *l, enum tec_cost_kind kind, int rows, double q)
{
    if (!l->table)
        return tec_costs_us(&l->costs, kind, rows, q);
    if (kind == TEC_COST_SHIFT)
        return l->table->copy_bytes_per_us > 0.0
                   ? 2.0 * (double)token_bytes(l) / l->table->copy_bytes_per_us
                   : 0.0;
    const struct tec_cost_row *row =
        tec_cost_table_row(l->table, kind == TEC_COST_PACKED ? "packed" : "decode", rows);
    return row ? tec_cost_row_us(row, q) : 0.0;
}

/* A steady frame of a ring of so many in flight: its forwards, and what is moved behind each. */
static double packed_cost(const struct tec_loop *l, int depth, double q)
{
    const struct tec_plan_spec *s = &l->o.plan->spec;
    int forwards, K = s->stages;
    double us = 0.0;
    depth = depth < 1 ? 1 : depth > K ? K : depth;
    forwards = tec_stages_forwards(K, depth);
    for (int i = 0; i < forwards; i++) {
        int rows = tec_stages_rows(K, depth, i);
        us += ring_cost(l, i ? TEC_COST_DECODE : TEC_COST_PACKED, rows, q);
        if (s->shifts)
            us += (double)tec_stages_moved(K, depth, i, s->frame_tokens) *
                  ring_cost(l, TEC_COST_SHIFT, 0, q);
    }
    return us;
}

double tec_loop_launch_cost(const struct tec_loop *l, enum tec_cost_kind kind, int rows, double q)
{
    static const char *const words[TEC_COST_KINDS] = {[TEC_COST_PREFILL] = "prefill",
                                                      [TEC_COST_ACTION] = "action",
                                                      [TEC_COST_DECODE] = "decode",
                                                      [TEC_COST_SCORE] = "score"};
    return l->o.ring ? ring_cost(l, kind, rows, q) : tec_loop_cost(l, words[kind], rows, q);
}

/* More rows than the largest captured batch are several launches, full ones first. */
double tec_loop_cost(const struct tec_loop *l, const char *what, double point, double q)
{
    int rows = rows_of(point), n = l->costs.n_batches;
    if (strcmp(what, "packed") == 0 && (l->o.ring || !names(l->o.topology, what)))
        return l->o.ring ? packed_cost(l, rows, q) : -1.0;
    if (n == 0 || tec_cost_kind_of(kind_of(l->o.topology, what)) != TEC_COST_DECODE)
        return launch_cost(l, what, 0, q);
    int largest = l->costs.batches[n - 1], full = rows / largest;
    int rest = tec_snap_up(l->costs.batches, n, rows - full * largest);
    double us = full > 0 ? full * launch_cost(l, what, largest, q) : 0.0;
    return full > 0 && rows == full * largest ? us : us + launch_cost(l, what, rest, q);
}

static double cost_of(const void *self, const char *what, double point, double q)
{
    return tec_loop_cost(self, what, point, q);
}

/* When the device is wanted next; INT64_MAX in a loop of one session whose frames follow each
 * other. */
static int64_t wanted_next(const struct tec_loop *l, int64_t now)
{
    if (l->o.wanted)
        return l->o.wanted(l->o.wanted_self, now);
    int64_t next = l->tick->next_ns, period = l->o.period_ns;
    if (period > 0 && next <= now)
        next += ((now - next) / period + 1) * period;
    return next;
}

static double slack_of(const void *self, double q)
{
    const struct tec_loop *l = self;
    int64_t now = tec_loop_now(l), next = wanted_next(l, now);
    double hard = l->o.ring                ? tec_loop_cost(l, "packed", tec_ring_depth(l), q)
                  : l->o.prefill_node >= 0 ? tec_loop_cost(l, "prefill", 0.0, q)
                                           : 0.0;
    if (!l->o.ring && l->o.action_node >= 0)
        hard += tec_loop_cost(l, "action", 0.0, q);
    if (next == INT64_MAX)
        next = l->record.start_ns + l->o.topology->period_us * 1000;
    double slack = (double)(next - now) / 1000.0 - hard;
    return slack > 0.0 ? slack : 0.0;
}

void tec_loop_prepare_view(struct tec_loop *l)
{
    const struct tec_plan *p = l->o.plan;
    l->view.req = l->view_rows;
    l->view.slots = p->spec.seats;
    l->view.horizon = p->model->flow.horizon;
    l->view.period_us = l->o.topology->period_us;
    l->view.seed = l->o.topology->seed;
    l->view.costs = (struct tec_cost_source){cost_of, slack_of, l};
    l->view.n_inputs = l->o.topology->n_inputs;
    l->view.late_us = l->late_us;
    l->view.n_kv = l->o.topology->n_kv < 2 ? l->o.topology->n_kv : 2;
    l->view.kv = l->kv;
    if (l->view.n_kv == 1) /* of requests that hold on to a prefix alone */
        l->kv[1].name = l->o.topology->kv[0];
    int64_t caps[2] = {p->spec.stages ? (int64_t)p->spec.stages * p->spec.ring_tokens
                                      : (int64_t)p->prefixes.n * p->prefixes.tokens,
                       (int64_t)p->spec.seats * (p->spec.own_tokens + p->spec.new_tokens)};
    for (int i = 0; i < l->view.n_kv; i++) {
        l->kv[i].name = l->o.topology->kv[i];
        l->kv[i].cap = caps[i];
    }
}
