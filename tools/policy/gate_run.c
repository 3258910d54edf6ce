/* gate_run.c - one simulated run of a policy, with a planner in between that measures and digests
 * every decision for the gate. */
#include "tools/policy/gate_run.h"

#include "tools/measure/measure.h"

#include "policies/host/state.h"
#include "tools/api/topology.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATE_BYTES = 64 * 1024 };

/* --- a reload in the middle ----------------------------------------------------------------- */

static struct tec_policy *current(const struct tec_gate_run *r)
{
    return r->reloaded ? r->reloaded : r->opened.policy;
}

static enum tec_status hand_over(struct tec_gate_run *r, struct tec_policy **fresh,
                                 struct tec_state_copy *copy, struct tec_error *err)
{
    const struct tec_shared *s = &r->call->shared;
    if (!copy->bytes)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a state of %zu bytes", copy->size);
    if (tec_policy_copy_state(r->opened.policy, copy) != TEC_OK)
        return tec_fail(err, TEC_MALFORMED, "%s", copy->why);
    TEC_TRY(tec_open_policy(fresh, r->opened.pipeline, r->policy ? r->policy : s->policy,
                            r->call->root, &r->opened.engine->topology, s->param.item, s->param.n,
                            r->call->heap, err));
    return tec_policy_migrate(*fresh, copy, err);
}

/* Replace the policy by a fresh one that takes over its state. */
static void reload(struct tec_gate_run *r)
{
    struct tec_state_copy copy = {.size = STATE_BYTES};
    struct tec_policy *fresh = NULL;
    copy.bytes = tec_heap_get(r->call->heap, copy.size);
    enum tec_status status = hand_over(r, &fresh, &copy, &r->reload_error);
    tec_heap_put(r->call->heap, copy.bytes);
    r->reload_failed = status != TEC_OK;
    if (status != TEC_OK) {
        tec_policy_close(fresh);
        return;
    }
    r->reloaded = fresh;
    r->inner = tec_policy_planner(fresh);
    r->failures = 0;
}

/* --- the planner in between ----------------------------------------------------------------- */

/* The CPU time of the thread, so that other work on the machine is not charged to the policy. */
static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* FNV-1a over single fields, because the value of padding is undefined. */
static void mix(uint64_t *digest, const void *bytes, size_t n)
{
    for (const unsigned char *b = bytes; n > 0; n--, b++)
        *digest = (*digest ^ *b) * 0x100000001b3u;
}

static void mix_int(uint64_t *digest, int64_t value)
{
    mix(digest, &value, sizeof value);
}

static uint64_t digest_of(const struct tec_decision *d, const struct tec_topology *t,
                          enum tec_status status)
{
    uint64_t digest = 0xcbf29ce484222325u;
    mix_int(&digest, (int64_t)status);
    for (int i = 0; i < d->n_rows; i++) {
        const struct tec_row_decision *r = &d->rows[i];
        const int64_t values[] = {r->k, r->group, r->priority, r->unshare, r->shed};
        mix(&digest, values, sizeof values);
        mix(&digest, r->reason, strlen(r->reason));
    }
    for (int i = 0; i < t->n_nodes; i++) {
        const int64_t values[] = {d->nodes[i].skip, d->nodes[i].priority, d->nodes[i].partition,
                                  d->nodes[i].slices};
        mix(&digest, values, sizeof values);
    }
    for (int i = 0; i < TEC_MAX_RINGS; i++)
        mix_int(&digest, d->depth[i]);
    for (int i = 0; i < d->n_notes; i++) {
        mix(&digest, d->notes[i].key, strlen(d->notes[i].key) + 1);
        mix(&digest, d->notes[i].text, strlen(d->notes[i].text) + 1);
        if (d->notes[i].is_number)
            mix(&digest, &d->notes[i].number, sizeof d->notes[i].number);
    }
    return digest;
}

static bool captured(const int *points, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (points[i] == value)
            return true;
    return value == 0;
}

static void judge_decision(struct tec_gate_run *r, const struct tec_decision *d)
{
    const struct tec_topology *t = &r->opened.engine->topology;
    r->rows += d->n_rows;
    r->snapped += d->snapped;
    for (int i = 0; i < d->n_rows; i++) {
        const struct tec_row_decision *row = &d->rows[i];
        r->outside += !captured(t->k, t->n_k, row->k) || row->group < 0 ||
                      row->group > TEC_MAX_ROWS || row->priority < 0;
    }
    for (int i = 0; i < t->n_nodes; i++)
        r->outside += d->nodes[i].skip && !t->nodes[i].optional;
    for (int i = 0; i < t->n_rings; i++)
        r->outside += !captured(t->depth, t->n_depth, d->depth[i]);
}

static enum tec_status plan(void *self, const struct tec_frame_view *view, struct tec_decision *d,
                            struct tec_error *err)
{
    struct tec_gate_run *r = self;
    if (r->reload_at > 0 && r->n == r->reload_at)
        reload(r);
    int64_t before = tec_policy_allocations(current(r)), start = cpu_ns();
    enum tec_status status = r->inner.plan(r->inner.self, view, d, err);
    int64_t took = cpu_ns() - start;
    int64_t made = tec_policy_allocations(current(r)) - before;
    int64_t failures = tec_policy_report(current(r))->failures;
    if (failures != r->failures) /* a failure allocates its message */
        made = 0;
    r->failures = status == TEC_OK ? failures : r->failures;
    if (r->n < r->room) {
        r->plan_ns[r->n] = took;
        r->indices[r->n] = view->index;
        r->digests[r->n] = digest_of(d, &r->opened.engine->topology, status);
        r->made[r->n] = made;
    }
    r->n++;
    if (status == TEC_OK)
        judge_decision(r, d);
    return status;
}

static bool admit(void *self, const struct tec_frame_view *view,
                  const struct tec_request_view *request, char reason[32])
{
    struct tec_gate_run *r = self;
    return r->inner.admit(r->inner.self, view, request, reason);
}

static void observe(void *self, const struct tec_frame_view *view,
                    const struct tec_frame_result *result)
{
    struct tec_gate_run *r = self;
    r->inner.observe(r->inner.self, view, result);
}

static int evict(void *self, const struct tec_frame_view *view, int n)
{
    struct tec_gate_run *r = self;
    return r->inner.evict(r->inner.self, view, n);
}

/* --- events -------------------------------------------------------------------------------- */

static struct tec_gate_wait *find(struct tec_gate_run *r, int64_t id)
{
    for (int i = 0; i < r->n_waits; i++)
        if (r->waits[i].id == id)
            return &r->waits[i];
    return NULL;
}

/* A request has received a token or has ended: record how long it had waited. */
static void settle(struct tec_gate_run *r, int64_t id, bool over)
{
    struct tec_gate_wait *w = find(r, id);
    if (!w)
        return;
    int64_t waited = r->count - w->since;
    if (waited > r->worst_wait) {
        r->worst_wait = waited;
        r->worst_request = id;
    }
    w->since = r->count;
    w->heard = true;
    if (over)
        *w = r->waits[--r->n_waits];
}

static bool could_wait(const struct tec_frame_record *record)
{
    bool soft = record->rows > 0;
    for (int i = 0; i < record->n_launches; i++)
        soft = soft || record->launches[i].request >= 0;
    return soft;
}

/* Whether a ring's frame was too long although a deeper depth has fewer forwards. The price of a
 * change of depth is no fault: frames without an action after it, and more rows before it. */
static bool could_be_deeper(const struct tec_gate_run *r, const struct tec_frame_record *record)
{
    const struct tec_topology *t = &r->opened.engine->topology;
    return record->actions[0].release_ns >= 0 && record->overrun_us > 0 &&
           r->steady >= tec_topology_stages(t) && t->n_depth > 0 &&
           record->depth < t->depth[t->n_depth - 1];
}

static void end_frame(struct tec_gate_run *r, const struct tec_event *e)
{
    const struct tec_frame_record *record = e->record;
    bool plan = record->cause == TEC_CAUSE_PLAN || record->cause == TEC_CAUSE_POLICY;
    if (record->missed && r->first_missed < 0)
        r->first_missed = e->tick->frame;
    r->own_missed +=
        record->missed && plan && (record->depth ? could_be_deeper(r, record) : could_wait(record));
    r->steady = record->depth == r->last_depth ? r->steady + 1 : 0;
    r->last_depth = record->depth;
}

static void take_event(struct tec_gate_run *r, const struct tec_event *e)
{
    switch (e->kind) {
    case TEC_EVENT_FRAME:
        r->count++;
        break;
    case TEC_EVENT_ADMIT:
        r->admitted++;
        if (r->n_waits < TEC_MAX_ROWS)
            r->waits[r->n_waits++] = (struct tec_gate_wait){e->request, r->count, false};
        break;
    case TEC_EVENT_TOKENS:
        settle(r, e->request, false);
        break;
    case TEC_EVENT_SHED:
        r->unheard += strcmp(e->what, TEC_SHED_LATE) == 0 && find(r, e->request) &&
                      !find(r, e->request)->heard;
        settle(r, e->request, true);
        break;
    case TEC_EVENT_FINISH:
    case TEC_EVENT_CANCEL:
        settle(r, e->request, true);
        break;
    case TEC_EVENT_FRAME_END:
        end_frame(r, e);
        break;
    default:
        break;
    }
}

static void emit(void *self, const struct tec_event *event)
{
    struct tec_gate_run *r = self;
    take_event(r, event);
    r->told.emit(r->told.self, event);
}

/* --- a run --------------------------------------------------------------------------------- */

static enum tec_status make_room(struct tec_gate_run *r, struct tec_arena *arena,
                                 struct tec_error *err)
{
    r->room = (int)r->scenario->frames;
    r->plan_ns = TEC_NEW(arena, (size_t)r->room + 1, int64_t);
    r->indices = TEC_NEW(arena, (size_t)r->room + 1, int64_t);
    r->digests = TEC_NEW(arena, (size_t)r->room + 1, uint64_t);
    r->made = TEC_NEW(arena, (size_t)r->room + 1, int64_t);
    if (!r->plan_ns || !r->indices || !r->digests || !r->made)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the decisions of %d frames", r->room);
    return TEC_OK;
}

static enum tec_status open_all(struct tec_gate_run *r, struct tec_arena *arena,
                                struct tec_error *err)
{
    struct tec_engine_options options;
    const struct tec_engine_options more = {.saturated = !r->scenario->paced};
    TEC_TRY(tec_cli_open_simulated(&r->opened, &options, r->call, r->pipeline, &more, err));
    options.random = tec_measured_by(r->call, r->opened.pipeline) != TEC_MEASURED_CHECKPOINT;
    options.progress = NULL;
    tec_simulator_connect(&r->simulator, r->device, &options);
    r->told = options.events;
    options.events = (struct tec_event_sink){emit, r};
    TEC_TRY(tec_engine_simulate(&r->opened.engine, &options, r->device, r->call->heap, err));
    TEC_TRY(tec_use_policy(&r->opened, r->policy, err));
    r->inner = tec_policy_planner(r->opened.policy);
    const struct tec_planner probe = {.name = r->inner.name,
                                      .self = r,
                                      .admit = r->inner.admit ? admit : NULL,
                                      .plan = plan,
                                      .observe = r->inner.observe ? observe : NULL,
                                      .evict = r->inner.evict ? evict : NULL};
    tec_loop_set_planner(r->opened.engine->loop, &probe);
    const struct tec_simulator_options w = {.pipeline = r->opened.pipeline,
                                            .scenario = r->scenario,
                                            .costs = r->costs,
                                            .seen = r->seen,
                                            .engine = r->opened.engine,
                                            .device = r->device,
                                            .policy = r->opened.policy};
    TEC_TRY(tec_simulator_init(&r->simulator, &w, arena, err));
    return TEC_OK;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum tec_status tec_gate_run(struct tec_gate_run *run, struct tec_arena *arena,
                             struct tec_error *err)
{
    run->first_missed = -1;
    TEC_TRY(make_room(run, arena, err));
    TEC_TRY(open_all(run, arena, err));
    TEC_TRY(tec_simulator_run(&run->simulator, err));
    run->n = run->n < run->room ? run->n : run->room;
    while (run->n_waits > 0) /* requests still waiting at the end count too */
        settle(run, run->waits[0].id, true);
    qsort(run->plan_ns, (size_t)run->n, sizeof *run->plan_ns, by_value);
    return TEC_OK;
}

void tec_gate_finish(struct tec_gate_run *run)
{
    tec_simulator_finish(&run->simulator);
    tec_close_engine(&run->opened);
    tec_policy_close(run->reloaded);
    run->reloaded = NULL;
}

int64_t tec_gate_plan_ns(const struct tec_gate_run *run, double q)
{
    int rank = (int)(q * run->n + 0.9999999) - 1;
    return run->n ? run->plan_ns[rank < 0 ? 0 : rank >= run->n ? run->n - 1 : rank] : 0;
}

int tec_gate_differs(const struct tec_gate_run *a, const struct tec_gate_run *b)
{
    int n = a->n < b->n ? a->n : b->n;
    for (int i = 0; i < n; i++)
        if (a->digests[i] != b->digests[i] || a->indices[i] != b->indices[i])
            return i;
    return a->n == b->n ? -1 : n;
}
