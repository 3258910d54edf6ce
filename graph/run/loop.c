#include "graph/run/state.h"

#include <string.h>

/* The node names of the pipeline file stay visible in every record. */
static const char *node_name(const struct tec_loop *l, int node)
{
    return node >= 0 ? l->o.topology->nodes[node].name : "";
}

static struct tec_launch_record *note(struct tec_loop *l, const char *node, int64_t start,
                                      int64_t end)
{
    struct tec_frame_record *r = &l->record;
    if (r->n_launches == TEC_MAX_LAUNCHES)
        return &r->launches[TEC_MAX_LAUNCHES - 1];
    struct tec_launch_record *launch = &r->launches[r->n_launches++];
    *launch = (struct tec_launch_record){.node = node,
                                         .rows = 1,
                                         .batch = 1,
                                         .k = 1,
                                         .request = -1,
                                         .start_ns = start,
                                         .end_ns = end};
    return launch;
}

static int node_of(const struct tec_loop *l, int row)
{
    return l->o.decoders[l->requests[row].decoder].node;
}

static bool skipped(const struct tec_loop *l, int node)
{
    return node >= 0 && l->o.topology->nodes[node].optional && l->decision.nodes[node].skip;
}

/* Prefill and action; the actions leave here, before anything else is looked at. */
static void run_hard(struct tec_loop *l, const struct tec_frame_input *input)
{
    struct tec_replay replay = {0};
    struct tec_frame_record *r = &l->record;
    bool action =
        l->o.plan->spec.steps > 0 && !(skipped(l, l->o.action_node) && l->o.plan->spec.isolated);
    l->region = tec_kv_pool_take(&l->o.plan->prefixes);
    l->prefix_rows = tec_prefix_rows(l->o.plan, &input->prefix);
    l->last_token = input->prefix.ids[input->prefix.n_text - 1];
    l->o.executor.prefix(l->o.executor.self, action ? TEC_PART_FRAME : TEC_PART_PREFIX, l->region,
                         input, &replay);
    if (action) {
        l->o.executor.actions(l->o.executor.self, l->chunk);
        r->release_ns = tec_loop_now(l);
        r->age_us = (r->release_ns - input->captured_ns) / 1000;
        r->slack_us = r->deadline_ns >= 0 ? (r->deadline_ns - r->release_ns) / 1000 : 0;
        if (l->o.released)
            l->o.released(l->o.user, l->chunk, r);
    }
    note(l, node_name(l, l->o.prefill_node), replay.start_ns, replay.mark_ns[TEC_MARK_PREFILL]);
    if (action)
        note(l, node_name(l, l->o.action_node), replay.mark_ns[TEC_MARK_PREFILL],
             replay.mark_ns[TEC_MARK_ACTION]);
    tec_loop_measure_prefix(l, &replay, action);
}

/* New requests get the frame's prefix by reference, or a private one. */
static void store_new(struct tec_loop *l, const struct tec_frame_input *input)
{
    for (int i = 0; i < l->n_live; i++) {
        struct tec_request *r = &l->requests[i];
        if (r->stored)
            continue;
        r->shared = !(l->decision.rows[i].unshare && l->o.plan->spec.isolated);
        if (r->shared) {
            tec_kv_pool_pin(&l->o.plan->prefixes, l->region);
            tec_requests_store(l, r, l->region);
            continue;
        }
        struct tec_replay replay = {0};
        int region = tec_kv_pool_take(&l->o.plan->prefixes);
        l->o.executor.prefix(l->o.executor.self, TEC_PART_PREFIX, region, input, &replay);
        note(l, node_name(l, l->o.prefill_node), replay.start_ns, replay.end_ns)->request = r->id;
        tec_loop_measure_prefix(l, &replay, false);
        tec_requests_store(l, r, region);
    }
}

/* One launch of n rows, by k steps. */
static void advance(struct tec_loop *l, const int *rows, int n, int k)
{
    struct tec_row_state *states[TEC_MAX_ROWS] = {NULL};
    struct tec_replay replay = {0};
    int steps = 0;
    for (int i = 0; i < n; i++)
        states[i] = &l->requests[rows[i]].row;
    l->o.executor.decode(l->o.executor.self, states, n, k, l->tokens, l->made, &replay);
    for (int i = 0; i < n; i++) {
        tec_requests_update(l, &l->requests[rows[i]], l->tokens + (size_t)i * (size_t)k,
                            l->made[i]);
        if (l->made[i] > steps)
            steps = l->made[i];
    }
    const struct tec_decoder *d = &l->o.decoders[l->requests[rows[0]].decoder];
    struct tec_launch_record *launch = note(l, d->name, replay.start_ns, replay.end_ns);
    launch->rows = n;
    launch->batch = tec_snap_up(l->costs.batches, l->costs.n_batches, n);
    launch->k = k;
    l->record.rows += n;
    tec_loop_measure_decode(l, &replay, n, steps);
}

/* A node's priority comes before its rows' own. */
static bool before(const struct tec_loop *l, int a, int b)
{
    int x = l->decision.nodes[node_of(l, a)].priority,
        y = l->decision.nodes[node_of(l, b)].priority;
    return x != y ? x < y : l->decision.rows[a].priority < l->decision.rows[b].priority;
}

/* Rows in the order (priority, id); requests are ascending by id already. */
static int order_rows(const struct tec_loop *l, int *order)
{
    int n = 0;
    for (int i = 0; i < l->n_live; i++) {
        if (l->decision.rows[i].k <= 0 || !l->requests[i].stored || l->requests[i].row.done ||
            skipped(l, node_of(l, i)))
            continue;
        int at = n++;
        while (at > 0 && before(l, i, order[at - 1])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return n;
}

/* Rows of equal group and k share a launch; launches are ordered by their first row; more rows than
 * the largest captured batch are split, full launches first. */
static void run_soft(struct tec_loop *l)
{
    int order[TEC_MAX_ROWS], rows[TEC_MAX_ROWS];
    int n = order_rows(l, order);
    int largest = n ? l->costs.batches[l->costs.n_batches - 1] : 0;
    bool taken[TEC_MAX_ROWS] = {false};
    for (int i = 0; i < n; i++) {
        const struct tec_row_decision *first = &l->decision.rows[order[i]];
        int k = first->k < l->o.plan->spec.max_k ? first->k : l->o.plan->spec.max_k, count = 0;
        if (taken[i])
            continue;
        for (int j = i; j < n; j++) {
            const struct tec_row_decision *d = &l->decision.rows[order[j]];
            if (taken[j] || d->group != first->group || d->k != first->k)
                continue;
            taken[j] = true;
            rows[count++] = order[j];
            if (count == largest) {
                advance(l, rows, count, k);
                count = 0;
            }
        }
        if (count)
            advance(l, rows, count, k);
    }
}

static void shed_chosen(struct tec_loop *l)
{
    for (int i = l->n_live - 1; i >= 0; i--)
        if (l->decision.rows[i].shed) {
            tec_requests_finish(l, i, "policy", 2);
            memmove(&l->decision.rows[i], &l->decision.rows[i + 1],
                    (size_t)(TEC_MAX_ROWS - i - 1) * sizeof l->decision.rows[0]);
            l->record.shed++;
        }
}

static double cost_of(const void *self, const char *what, double point, double q)
{
    const struct tec_loop *l = self;
    const struct tec_topology *t = l->o.topology;
    const char *kind = what;
    for (int i = 0; i < t->n_nodes; i++)
        if (strcmp(t->nodes[i].name, what) == 0)
            kind = t->nodes[i].kind;
    enum tec_cost_kind known = tec_cost_kind_of(kind);
    return known < TEC_COST_KINDS ? tec_costs_us(&l->costs, known, (int)point, q) : -1.0;
}

static double slack_of(const void *self, double q)
{
    const struct tec_loop *l = self;
    double hard = cost_of(self, "prefill", 0.0, q) + cost_of(self, "action", 0.0, q);
    double now = (double)tec_loop_now(l) / 1000.0;
    int64_t opened = l->o.period_ns ? l->record.tick_ns : l->record.start_ns;
    double next = (double)opened / 1000.0 + (double)l->o.topology->period_us;
    double slack = next - now - hard;
    return slack > 0.0 ? slack : 0.0;
}

void tec_loop_plan(struct tec_loop *l)
{
    struct tec_error err;
    tec_plan_default(l->o.topology, &l->view, &l->decision);
    if (!l->o.planner.plan)
        return;
    l->scratch = l->decision;
    if (l->o.planner.plan(l->o.planner.self, &l->view, &l->scratch, &err) == TEC_OK)
        l->decision = l->scratch;
    l->record.snapped = l->decision.snapped;
}

static void open_frame(struct tec_loop *l, int64_t tick_ns)
{
    struct tec_frame_record *r = &l->record;
    r->frame = l->frame;
    r->tick_ns = tick_ns;
    r->start_ns = tec_loop_now(l);
    r->deadline_ns = l->o.deadline_ns ? tick_ns + l->o.deadline_ns : -1;
    r->end_ns = r->release_ns = -1;
    r->age_us = -1;
    r->slack_us = 0;
    r->missed = false;
    r->cause = TEC_CAUSE_NONE;
    r->tokens = r->rows = r->snapped = r->refused = r->shed = r->n_launches = 0;
    l->region = -1;
    l->replayed_ns = l->device_over_ns = 0;
}

const struct tec_frame_record *tec_loop_frame(struct tec_loop *l,
                                              const struct tec_frame_input *input, int64_t tick_ns,
                                              unsigned spawn)
{
    open_frame(l, tick_ns);
    int64_t before = tec_loop_now(l);
    tec_requests_expire(l);
    tec_loop_view(l);
    for (int d = 0; input && l->o.plan->spec.seats && d < l->o.n_decoders; d++)
        if ((spawn >> d & 1U) || (l->o.decoders[d].every && l->frame % l->o.decoders[d].every == 0))
            tec_requests_spawn(l, d);
    tec_loop_view(l);
    tec_loop_plan(l);
    shed_chosen(l);
    l->record.planner_ns = tec_loop_now(l) - before;
    if (input) {
        run_hard(l, input);
        store_new(l, input);
    }
    run_soft(l);
    tec_requests_sweep(l);
    tec_kv_pool_drop(&l->o.plan->prefixes, l->region);
    l->record.end_ns = tec_loop_now(l);
    tec_loop_account(l);
    if (l->o.planner.observe)
        l->o.planner.observe(l->o.planner.self, &l->view, &l->result);
    l->frame++;
    return &l->record;
}

void tec_loop_warm(struct tec_loop *l, const struct tec_frame_input *input, int times)
{
    const struct tec_plan_spec *s = &l->o.plan->spec;
    struct tec_kv_pool *pool = &l->o.plan->prefixes;
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS];
    int region = tec_kv_pool_take(pool);
    l->prefix_rows = tec_prefix_rows(l->o.plan, &input->prefix);
    l->warming = true;
    for (int i = 0; i < times; i++) {
        struct tec_replay replay = {0};
        l->o.executor.prefix(l->o.executor.self, TEC_PART_FRAME, region, input, &replay);
        tec_loop_measure_prefix(l, &replay, s->steps > 0);
        if (s->seats && s->isolated) {
            replay = (struct tec_replay){0};
            l->o.executor.prefix(l->o.executor.self, TEC_PART_PREFIX, region, input, &replay);
            tec_loop_measure_prefix(l, &replay, false);
        }
        for (int b = 0; s->seats && b < s->n_batches; b++) {
            int n = s->batches[b] < s->seats ? s->batches[b] : s->seats;
            for (int r = 0; r < n; r++) {
                tec_row_start(&rows[r], l->o.plan, region, l->prefix_rows, input->prefix.ids[0], r,
                              s->new_tokens, -1);
                list[r] = &rows[r];
            }
            replay = (struct tec_replay){0};
            l->o.executor.decode(l->o.executor.self, list, n, 1, l->tokens, l->made, &replay);
            tec_loop_measure_decode(l, &replay, s->batches[b], 1);
        }
    }
    l->warming = false;
    tec_kv_pool_drop(pool, region);
}

void tec_loop_reset(struct tec_loop *l)
{
    while (l->n_live)
        tec_requests_finish(l, l->n_live - 1, "reset", 2);
    l->frame = 0;
    l->next_id = 0;
    memset(&l->result, 0, sizeof l->result);
}

static enum tec_status take_memory(struct tec_loop *l, struct tec_error *err)
{
    const struct tec_plan *p = l->o.plan;
    size_t seats = (size_t)p->spec.seats + 1;
    l->requests = TEC_NEW(&l->arena, seats, struct tec_request);
    l->seat_taken = TEC_NEW(&l->arena, seats, bool);
    l->n_texts = 2 * (int)seats;
    l->texts = TEC_NEW(&l->arena, (size_t)l->n_texts, struct tec_utterance);
    l->view_rows = TEC_NEW(&l->arena, seats, struct tec_request_view);
    l->chunk =
        TEC_NEW(&l->arena, (size_t)p->model->flow.horizon * (size_t)p->model->flow.dim, float);
    l->tokens = TEC_NEW(&l->arena, seats * ((size_t)p->spec.max_k + 1), int);
    l->made = TEC_NEW(&l->arena, seats, int);
    l->text_ended = TEC_NEW(&l->arena, (size_t)l->n_texts, int64_t);
    bool ok = l->requests && l->seat_taken && l->texts && l->view_rows && l->chunk && l->tokens &&
              l->made && l->text_ended;
    for (int i = 0; ok && i < l->n_texts; i++) {
        l->texts[i].id = -1;
        l->texts[i].reason = "";
        l->texts[i].tokens = TEC_NEW(&l->arena, (size_t)p->spec.new_tokens + 1, int);
        ok = l->texts[i].tokens != NULL;
    }
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a frame loop");
}

static void prepare_view(struct tec_loop *l)
{
    const struct tec_plan *p = l->o.plan;
    const struct tec_kv_shape *s = &p->space.shape;
    int64_t token = (int64_t)s->layers * 2 * s->kv_heads * s->head_dim * (s->bf16 ? 2 : 4);
    l->view.req = l->view_rows;
    l->view.slots = p->spec.seats;
    l->view.horizon = p->model->flow.horizon;
    l->view.period_us = l->o.topology->period_us;
    l->view.seed = l->o.topology->seed;
    l->view.costs = (struct tec_cost_source){cost_of, slack_of, l};
    l->view.n_kv = l->o.topology->n_kv < 2 ? l->o.topology->n_kv : 2;
    l->view.kv = l->kv;
    int64_t caps[2] = {(int64_t)p->prefixes.n * p->prefixes.tokens,
                       (int64_t)p->spec.seats * p->spec.new_tokens};
    for (int i = 0; i < l->view.n_kv; i++) {
        l->kv[i].name = l->o.topology->kv[i];
        l->kv[i].cap = caps[i];
        l->kv[i].bytes = caps[i] * token;
    }
}

enum tec_status tec_loop_create(struct tec_loop **out, const struct tec_loop_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    if (options->plan->spec.seats > TEC_MAX_ROWS)
        return tec_fail(err, TEC_INVALID, "%d request slots; this release handles %d",
                        options->plan->spec.seats, TEC_MAX_ROWS);
    struct tec_loop *l = tec_heap_get(heap, sizeof *l);
    if (!l)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a frame loop");
    l->o = *options;
    l->heap = heap;
    tec_arena_init(&l->arena, heap);
    tec_costs_init(&l->costs, &options->plan->spec);
    enum tec_status status = take_memory(l, err);
    if (status != TEC_OK) {
        tec_loop_destroy(l);
        return status;
    }
    prepare_view(l);
    *out = l;
    return TEC_OK;
}

void tec_loop_destroy(struct tec_loop *l)
{
    if (!l)
        return;
    tec_arena_finish(&l->arena);
    tec_heap_put(l->heap, l);
}

void tec_loop_set_planner(struct tec_loop *l, const struct tec_planner *planner)
{
    l->o.planner = *planner;
}

int tec_loop_live(const struct tec_loop *l)
{
    return l->n_live;
}

int tec_loop_utterances(const struct tec_loop *l)
{
    return l->n_texts;
}

const struct tec_utterance *tec_loop_utterance(const struct tec_loop *l, int i)
{
    return &l->texts[i];
}

struct tec_costs *tec_loop_costs(struct tec_loop *l)
{
    return &l->costs;
}
