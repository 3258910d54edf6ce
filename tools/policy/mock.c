/* mock.c - puts a policy behind its real host before views that a test makes up, with costs given
 * as a table. */
#include "tools/policy/mock.h"

#include "tools/api/topology.h"

#include <math.h>
#include <string.h>

enum { PATIENT_US = 100000 };

const char *const tec_mock_level_names[TEC_MOCK_LEVELS] = {"p50", "p99", "p999", "max"};

/* --- costs -------------------------------------------------------------------------------- */

static int level_of(double q)
{
    return q <= 0.5 ? 0 : q <= 0.99 ? 1 : q <= 0.999 ? 2 : 3;
}

/* Whether `a` is a better answer at `level` than `b`: the level itself is best, then the next
 * higher one given. */
static bool closer(int a, int b, int level)
{
    if ((a >= level) != (b >= level))
        return a >= level;
    return a >= level ? a < b : a > b;
}

/* Find the entry for `batch` rows: the nearest level, and in it the smallest point that holds
 * them. */
static const struct tec_mock_cost *find(const struct tec_mock *m, const char *name, int batch,
                                        int level)
{
    const struct tec_mock_cost *best = NULL;
    for (int i = 0; i < m->n_costs; i++) {
        const struct tec_mock_cost *c = &m->costs[i];
        if (strcmp(c->name, name) != 0 || (c->batch > 0 && c->batch < batch))
            continue;
        int own = c->level < 0 ? level : c->level;
        int held = best && best->level >= 0 ? best->level : level;
        bool nearer = best && own != held && closer(own, held, level);
        if (!best || nearer || (own == held && c->batch < best->batch))
            best = c;
    }
    return best;
}

static int largest(const struct tec_mock *m, const char *name)
{
    int most = 0;
    for (int i = 0; i < m->n_costs; i++)
        if (strcmp(m->costs[i].name, name) == 0 && m->costs[i].batch > most)
            most = m->costs[i].batch;
    return most;
}

/* More rows than the largest point are several launches, full ones first. */
static double cost_named(const struct tec_mock *m, const char *name, double point, int level)
{
    int rows = point >= INT32_MAX ? INT32_MAX : point <= 1 ? 1 : (int)point;
    int most = largest(m, name), full = most > 0 ? (rows - 1) / most : 0;
    const struct tec_mock_cost *rest = find(m, name, rows - full * most, level);
    if (!rest)
        return -1;
    const struct tec_mock_cost *whole = full > 0 ? find(m, name, most, level) : rest;
    return full * whole->us + rest->us;
}

/* Look up the cost of the name itself, else of the kind of the node, else of the first node of a
 * kind. */
static double cost(const void *self, const char *what, double point, double q)
{
    const struct tec_mock *m = self;
    int level = level_of(q);
    double us = cost_named(m, what, point, level);
    for (int i = 0; us < 0 && i < m->topology.n_nodes; i++) {
        const char *name = m->topology.nodes[i].name, *kind = m->topology.nodes[i].kind;
        if (strcmp(what, name) == 0)
            us = cost_named(m, kind, point, level);
        else if (strcmp(what, kind) == 0)
            us = cost_named(m, name, point, level);
    }
    return us;
}

static double slack(const void *self, double q)
{
    return ((const struct tec_mock *)self)->slack[level_of(q)];
}

/* --- views -------------------------------------------------------------------------------- */

int tec_mock_node(const struct tec_mock *mock, const char *name)
{
    for (int i = 0; i < mock->topology.n_nodes; i++)
        if (strcmp(mock->topology.nodes[i].name, name) == 0)
            return i;
    return -1;
}

int tec_mock_prefill(const struct tec_mock *mock, int node)
{
    const struct tec_topology *t = &mock->topology;
    for (int i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].model == t->nodes[node].model && strcmp(t->nodes[i].kind, "prefill") == 0)
            return i;
    return -1;
}

struct tec_request_view tec_mock_request(const struct tec_mock *m, int i)
{
    int node = 0;
    while (node + 1 < m->topology.n_nodes && strcmp(m->topology.nodes[node].kind, "decode") != 0)
        node++;
    int declared = tec_pipeline_find_node(m->pipeline, m->topology.nodes[node].name);
    int most = declared >= 0 ? m->pipeline->nodes[declared].max_tokens : 0;
    int64_t soft = m->topology.nodes[node].deadline_us;
    return (struct tec_request_view){.id = i,
                                     .node = node,
                                     .left = most,
                                     .max = most,
                                     .born_us = m->view.now_us,
                                     .deadline_us = soft ? m->view.now_us + soft : INT64_MAX,
                                     .slack_us = soft ? soft : INT64_MAX,
                                     .shared = true,
                                     .fresh = true,
                                     .prefill = tec_mock_prefill(m, node)};
}

static int64_t hard_us(const struct tec_topology *t)
{
    int64_t least = 0;
    for (int i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].hard && t->nodes[i].deadline_us &&
            (!least || t->nodes[i].deadline_us < least))
            least = t->nodes[i].deadline_us;
    return least;
}

static void set_clock(struct tec_mock *m)
{
    int64_t hard = hard_us(&m->topology);
    m->view.budget_us = hard ? hard : m->view.period_us;
    m->view.deadline_us = m->view.now_us + m->view.budget_us;
}

void tec_mock_advance(struct tec_mock *m)
{
    m->view.index++;
    m->view.now_us += m->view.period_us;
    set_clock(m);
    for (int i = 0; i < m->view.n_req; i++) {
        m->req[i].age_frames++;
        m->req[i].fresh = false;
        if (m->req[i].deadline_us != INT64_MAX)
            m->req[i].slack_us = m->req[i].deadline_us - m->view.now_us;
    }
}

static enum tec_status make_view(struct tec_mock *m, struct tec_error *err)
{
    const struct tec_topology *t = &m->topology;
    m->kv = TEC_NEW(&m->arena, (size_t)t->n_kv + 1, struct tec_kv_view);
    m->late = TEC_NEW(&m->arena, (size_t)t->n_inputs + 1, int64_t);
    if (!m->kv || !m->late)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a view of pipeline '%s'",
                        m->pipeline->name);
    for (int i = 0; i < t->n_kv; i++)
        m->kv[i].name = t->kv[i];
    m->view = (struct tec_frame_view){.period_us = t->period_us,
                                      .slots = t->slots,
                                      .horizon = t->horizon,
                                      .req = m->req,
                                      .n_kv = t->n_kv,
                                      .kv = m->kv,
                                      .n_inputs = t->n_inputs,
                                      .late_us = m->late,
                                      .costs = {cost, slack, m},
                                      .seed = t->seed};
    m->view.last.n_nodes = t->n_nodes;
    set_clock(m);
    return TEC_OK;
}

/* --- open, close -------------------------------------------------------------------------- */

/* The number of actions of a chunk: the first size of the buffer that an action node writes; a ring
 * makes one action. */
static int declared_horizon(const struct tec_pipeline *p)
{
    const struct tec_decl_node *actor = tec_pipeline_actor(p);
    if (actor && actor->kind == TEC_DECL_DECODE)
        return 1;
    int buffer = actor ? actor->out.buffer : -1;
    return buffer >= 0 && p->resources[buffer].shape.n > 0 ? p->resources[buffer].shape.item[0] : 0;
}

static enum tec_status load_pipeline(struct tec_mock *m, const struct tec_mock_options *o,
                                     struct tec_error *err)
{
    struct tec_diagnostics d;
    struct tec_load_options options = {.path = o->pipeline,
                                       .root = tec_arena_printf(&m->arena, "%s/pipelines", o->root),
                                       .set = o->set,
                                       .n_set = o->n_set};
    if (!options.root)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    tec_diagnostics_init(&d, m->heap);
    enum tec_status status = tec_pipeline_load(&m->pipeline, &options, m->heap, &d, err);
    tec_diagnostics_finish(&d);
    TEC_TRY(status);
    m->pipeline->guard.soft_us = m->pipeline->guard.hard_us = PATIENT_US;
    m->pipeline->guard.strikes = TEC_MAX_STRIKES;
    int horizon = o->horizon > 0 ? o->horizon : declared_horizon(m->pipeline);
    return tec_live_topology_of(&m->topology, m->pipeline, o->layers, horizon, &m->arena, err);
}

enum tec_status tec_mock_open(struct tec_mock **out, const struct tec_mock_options *options,
                              struct tec_heap *heap, struct tec_error *err)
{
    *out = NULL;
    struct tec_mock *m = tec_heap_get(heap, sizeof *m);
    if (!m)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a policy under test");
    m->heap = heap;
    tec_arena_init(&m->arena, heap);
    enum tec_status status = load_pipeline(m, options, err);
    if (status == TEC_OK)
        status = make_view(m, err);
    if (status == TEC_OK)
        status = tec_open_policy(&m->policy, m->pipeline, options->policy, options->root,
                                 &m->topology, options->param, options->n_param, heap, err);
    if (status != TEC_OK) {
        tec_mock_close(m);
        return status;
    }
    m->planner = tec_policy_planner(m->policy);
    *out = m;
    return TEC_OK;
}

void tec_mock_close(struct tec_mock *m)
{
    if (!m)
        return;
    tec_policy_close(m->policy);
    tec_pipeline_free(m->pipeline);
    tec_arena_finish(&m->arena);
    tec_heap_put(m->heap, m);
}

/* --- decisions ---------------------------------------------------------------------------- */

void tec_mock_plan(struct tec_mock *m)
{
    bool banned = tec_policy_report(m->policy)->quarantined;
    tec_planner_default(&m->topology, &m->view, &m->decision);
    m->failed =
        banned || m->planner.plan(m->planner.self, &m->view, &m->decision, &m->error) != TEC_OK;
    if (banned)
        tec_fail(&m->error, TEC_POLICY, "the policy is quarantined after %d failures",
                 TEC_MAX_STRIKES);
    if (m->failed)
        tec_planner_default(&m->topology, &m->view, &m->decision);
}

void tec_mock_note_failure(struct tec_mock *m, int64_t failures_before)
{
    const struct tec_policy_report *report = tec_policy_report(m->policy);
    m->failed = report->failures > failures_before;
    if (m->failed)
        tec_fail(&m->error, TEC_POLICY, "%.380s", report->message);
}

static bool before(const struct tec_mock *m, int a, int b)
{
    int pa = m->decision.rows[a].priority, pb = m->decision.rows[b].priority;
    return pa < pb || (pa == pb && a < b);
}

static bool together(const struct tec_row_decision *a, const struct tec_row_decision *b)
{
    return a->group == b->group && a->k == b->k;
}

int tec_mock_launches(const struct tec_mock *m, int order[TEC_MAX_ROWS], int launch[TEC_MAX_ROWS])
{
    int sorted[TEC_MAX_ROWS], n = 0, done = 0, launches = 0;
    bool taken[TEC_MAX_ROWS] = {false};
    for (int i = 0; i < m->decision.n_rows; i++) {
        if (m->decision.rows[i].k == 0 || m->decision.rows[i].shed)
            continue;
        int at = n++;
        for (; at > 0 && before(m, i, sorted[at - 1]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = i;
    }
    for (int i = 0; i < n; i++) {
        if (taken[i])
            continue;
        for (int j = i; j < n; j++)
            if (!taken[j] && together(&m->decision.rows[sorted[i]], &m->decision.rows[sorted[j]])) {
                taken[j] = true;
                order[done] = sorted[j];
                launch[done++] = launches;
            }
        launches++;
    }
    return n;
}
