/* loop.c - runs one frame: requests in and out, the decision, the hard nodes, then language.
 *
 * Frame thread; after create nothing allocates, locks or blocks. On the lanes that they share, hard
 * nodes run before language and their chunk leaves as soon as it is there, so language costs time
 * only after the actions. The frame holds a reference to its prefix region until its end, so a
 * request that pins it never finds it overwritten. The steps of a frame are in decide.c, hard.c,
 * soft.c, requests.c and account.c. */
#include "graph/run/state.h"

#include <stdio.h>
#include <string.h>

void tec_loop_tell(const struct tec_loop *l, struct tec_event event)
{
    if (!l->o.events.emit)
        return;
    event.lane = l->lane;
    event.tick = l->tick;
    l->o.events.emit(l->o.events.self, &event);
}

static void open_frame(struct tec_loop *l, struct tec_tick *tick)
{
    struct tec_frame_record *r = &l->record;
    l->tick = tick;
    r->frame = tick->frame;
    r->tick_ns = tick->tick_ns;
    r->start_ns = tec_loop_now(l);
    r->deadline_ns = tick->deadline_ns;
    r->end_ns = r->release_ns = -1;
    r->age_us = r->seen = r->captured_ns = -1;
    r->slack_us = r->overrun_us = 0;
    r->missed = r->failed = r->filling = false;
    r->cause = TEC_CAUSE_NONE;
    r->tokens = r->rows = r->snapped = r->refused = r->shed = r->n_launches = 0;
    r->depth = r->to_come = r->n_reads = 0;
    l->region = -1;
    l->n_jobs = l->n_order = l->lane = 0;
    l->replayed_ns = l->device_over_ns = l->pending_ns = 0;
    l->replayed_until = r->start_ns;
    tec_loop_tell(l, (struct tec_event){
                         .kind = TEC_EVENT_FRAME, .node = -1, .request = -1, .t_ns = r->start_ns});
}

static void refuse_asks(struct tec_tick *tick)
{
    for (int i = 0; i < tick->n_asks; i++) {
        tick->asks[i].id = -1;
        tick->asks[i].refused = true;
        snprintf(tick->asks[i].reason, sizeof tick->asks[i].reason, "no observation");
    }
}

/* True if a model's text is new to the frame's session. Called once a frame, as it updates the
 * record of texts seen. */
static bool instructed(struct tec_loop *l, int model, const struct tec_frame_input *input,
                       const struct tec_tick *tick)
{
    int session = tick->session >= 0 && tick->session < TEC_MAX_TICKING ? tick->session : 0;
    uint64_t key = model ? input->secondary[model - 1].key : input->text_key;
    bool same = l->texts_given[model][session].seen && l->texts_given[model][session].key == key;
    l->texts_given[model][session].seen = true;
    l->texts_given[model][session].key = key;
    return !same;
}

static unsigned on_change(const struct tec_loop *l, int model)
{
    unsigned spawn = 0;
    for (int d = 0; d < l->o.n_decoders; d++)
        if (l->o.decoders[d].on_change && l->o.decoders[d].model == model)
            spawn |= 1U << d;
    return spawn;
}

/* A secondary model's prefill reads a stream that has no text yet: it does not start. */
static bool waits_for_text(const struct tec_loop *l, int model)
{
    return model > 0 && l->input->read[model].stream && l->input->secondary[model - 1].n == 0;
}

/* Apply cancellations and deadlines, then admit this tick's new requests. */
static void change_requests(struct tec_loop *l, const struct tec_frame_input *input,
                            struct tec_tick *tick)
{
    for (int i = 0; i < tick->n_cancels; i++) {
        bool live = tec_requests_cancel(l, tick->cancels[i]);
        if (tick->cancelled)
            tick->cancelled[i] = live;
    }
    tec_requests_expire(l);
    tec_requests_sweep(l);
    tec_loop_view(l);
    unsigned spawn = tick->spawn;
    for (int m = 0; input && m <= l->o.n_secondary; m++) {
        bool changed = instructed(l, m, input, tick);
        if (changed && l->o.ring && m == 0)
            tec_ring_flush(l);
        spawn |= changed ? on_change(l, m) & ~tick->mute : 0U;
    }
    if (!input || !l->request_slots) {
        refuse_asks(tick);
        return;
    }
    for (int d = 0; d < l->o.n_decoders; d++)
        if ((spawn >> d & 1U) && !waits_for_text(l, l->o.decoders[d].model))
            tec_requests_spawn(l, d, NULL);
    for (int i = 0; i < tick->n_asks; i++) {
        tick->asks[i].refused = false;
        tick->asks[i].reason[0] = '\0';
        tec_requests_spawn(l, tick->asks[i].decoder, &tick->asks[i]);
    }
}

static void await_input(struct tec_loop *l, const struct tec_tick *tick)
{
    if (tick->late_ns <= 0)
        return;
    if (l->o.executor.await) {
        int64_t before = tec_loop_now(l);
        l->o.executor.await(l->o.executor.self, tick->tick_ns + tick->late_ns);
        l->pending_ns = tec_loop_now(l) - before;
    }
    tec_loop_tell(l,
                  (struct tec_event){
                      .kind = TEC_EVENT_INPUT, .node = -1, .request = -1, .t_ns = tec_loop_now(l)});
}

/* Take a prefix region and run the frame's hard nodes, then language. */
static void run_nodes(struct tec_loop *l, const struct tec_frame_input *input)
{
    if (tec_loop_failed(l))
        return;
    if (l->o.ring) {
        tec_ring_run(l, input);
        tec_loop_run_soft(l, input, false);
        return;
    }
    l->parted = input && l->o.executor.beside;
    if (input) {
        l->region = tec_kv_pool_take(&l->o.plan->prefixes);
        l->prefix_rows = tec_prefix_rows(l->o.plan, &input->prefix);
        l->last_token = input->prefix.ids[input->prefix.n_text - 1];
        l->n_prompt = l->o.plan->used ? input->prefix.n_text : 0;
        memcpy(l->prompt, input->prefix.ids, (size_t)l->n_prompt * sizeof *l->prompt);
        tec_loop_tell_kv(l, "alloc", NULL, l->prefix_rows, tec_loop_now(l));
        if (l->parted)
            tec_loop_start_concurrent(l, input);
        tec_loop_run_hard(l, input);
    }
    tec_loop_run_soft(l, input, l->parted);
    if (input) {
        tec_kv_pool_drop(&l->o.plan->prefixes, l->region);
        tec_loop_tell_kv(l, "free", NULL, l->prefix_rows, tec_loop_now(l));
    }
}

const struct tec_frame_record *tec_loop_run(struct tec_loop *l, const struct tec_frame_input *input,
                                            struct tec_tick *tick)
{
    open_frame(l, tick);
    l->input = input;
    tec_loop_read_text(l, 0);
    int64_t before = tec_loop_now(l);
    change_requests(l, input, tick);
    l->record.planner_ns = tec_loop_now(l) - before;
    await_input(l, tick);
    before = tec_loop_now(l);
    tec_loop_view(l);
    tec_loop_plan(l);
    l->record.planner_ns += tec_loop_now(l) - before;
    run_nodes(l, input);
    tec_requests_sweep(l);
    l->record.end_ns = tec_loop_now(l);
    tec_loop_account(l);
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_FRAME_END,
                                        .node = -1,
                                        .request = -1,
                                        .t_ns = l->record.end_ns,
                                        .since_ns = l->record.start_ns,
                                        .record = &l->record});
    if (l->o.planner.observe)
        l->o.planner.observe(l->o.planner.self, &l->view, &l->result);
    if (l->o.executor.idle && !l->record.failed)
        l->o.executor.idle(l->o.executor.self, tick->next_ns);
    l->frame = tick->frame + 1;
    return &l->record;
}

unsigned tec_loop_spawns(const struct tec_loop *l, int64_t frame)
{
    unsigned spawn = 0;
    for (int d = 0; d < l->o.n_decoders; d++)
        if (l->o.decoders[d].every && frame % l->o.decoders[d].every == 0)
            spawn |= 1U << d;
    return spawn;
}

const struct tec_loop_options *tec_loop_settings(const struct tec_loop *l)
{
    return &l->o;
}

struct tec_tick tec_loop_tick(const struct tec_loop *l, int64_t tick_ns, unsigned spawn)
{
    spawn |= tec_loop_spawns(l, l->frame);
    return (struct tec_tick){.frame = l->frame,
                             .tick_ns = tick_ns,
                             .deadline_ns = l->o.deadline_ns ? tick_ns + l->o.deadline_ns : -1,
                             .next_ns = l->o.period_ns ? tick_ns + l->o.period_ns : INT64_MAX,
                             .spawn = spawn};
}

const struct tec_frame_record *tec_loop_frame(struct tec_loop *l,
                                              const struct tec_frame_input *input, int64_t tick_ns,
                                              unsigned spawn)
{
    struct tec_tick tick = tec_loop_tick(l, tick_ns, spawn);
    return tec_loop_run(l, input, &tick);
}

static void start_warm_rows(struct tec_loop *l, const struct tec_frame_input *input, int region,
                            struct tec_row_state *rows, struct tec_row_state **list)
{
    const struct tec_plan_spec *s = &l->o.plan->spec;
    for (int r = 0; r < s->request_slots; r++) {
        tec_row_start(&rows[r], l->o.plan, region, l->prefix_rows, input->prefix.ids[0], r,
                      s->new_tokens, -1);
        list[r] = &rows[r];
    }
}

static void warm_scores(struct tec_loop *l, const struct tec_row_state *row)
{
    for (int d = 0; d < l->o.n_decoders; d++) {
        struct tec_replay replay = {0};
        if (!l->o.decoders[d].tree || l->o.decoders[d].model)
            continue;
        l->o.executor.score(l->o.executor.self, l->o.decoders[d].tree, row, l->likely, &replay);
        tec_loop_measure_score(l, 0, &replay);
    }
}

/* Warm up every part of the second set, beside a frame. Costs are taken from launches that have the
 * device to themselves. */
static void warm_concurrent(struct tec_loop *l, const struct tec_frame_input *input, int region)
{
    const struct tec_plan_spec *s = &l->o.plan->spec;
    struct tec_executor *e = &l->o.executor;
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS];
    struct tec_replay replay = {0};
    int own = tec_kv_pool_take(&l->o.plan->prefixes), n = 0;
    start_warm_rows(l, input, own, rows, list);
    if (s->isolated)
        l->jobs[n++] = (struct tec_soft_job){.prefill = true, .region = own};
    for (int b = 0; b < s->n_batches; b++)
        l->jobs[n++] = (struct tec_soft_job){
            .rows = list,
            .n = s->batches[b] < s->request_slots ? s->batches[b] : s->request_slots,
            .k = 1,
            .tokens = l->tokens,
            .made = l->made};
    for (int d = 0; d < l->o.n_decoders && n < TEC_MAX_LAUNCHES; d++)
        if (l->o.decoders[d].tree && l->o.decoders[d].model == 0)
            l->jobs[n++] = (struct tec_soft_job){
                .tree = l->o.decoders[d].tree, .likely = l->likely, .rows = list, .n = 1, .k = 1};
    e->beside(e->self, l->jobs, n, input);
    e->prefix(e->self, TEC_PART_FRAME, region, input, &replay);
    e->join(e->self);
    tec_kv_pool_drop(&l->o.plan->prefixes, own);
}

void tec_loop_warm(struct tec_loop *l, const struct tec_frame_input *input, int times)
{
    const struct tec_plan_spec *s = &l->o.plan->spec;
    struct tec_kv_pool *pool = &l->o.plan->prefixes;
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS];
    l->prefix_rows = tec_prefix_rows(l->o.plan, &input->prefix);
    for (int i = 0; l->o.ring && i < times; i++)
        tec_ring_warm(l, input);
    if (l->o.ring) {
        l->warming = true;
        tec_spaces_warm(l, times);
        l->warming = false;
        return;
    }
    int region = tec_kv_pool_take(pool);
    l->warming = true;
    for (int i = 0; i < times; i++) {
        struct tec_replay replay = {0};
        l->o.executor.prefix(l->o.executor.self, TEC_PART_FRAME, region, input, &replay);
        tec_loop_measure_prefix(l, &replay, s->steps > 0);
        if (s->request_slots && s->isolated) {
            replay = (struct tec_replay){0};
            l->o.executor.prefix(l->o.executor.self, TEC_PART_PREFIX, region, input, &replay);
            tec_loop_measure_prefix(l, &replay, false);
        }
        for (int b = 0; s->request_slots && b < s->n_batches; b++) {
            int n = s->batches[b] < s->request_slots ? s->batches[b] : s->request_slots;
            start_warm_rows(l, input, region, rows, list);
            replay = (struct tec_replay){0};
            l->o.executor.decode(l->o.executor.self, list, n, 1, l->tokens, l->made, &replay);
            tec_loop_measure_decode(l, 0, &replay, s->batches[b], 1, 1);
        }
        if (s->trees.rows) {
            start_warm_rows(l, input, region, rows, list);
            warm_scores(l, &rows[0]);
        }
    }
    if (s->beside && l->o.executor.beside)
        warm_concurrent(l, input, region);
    tec_spaces_warm(l, times);
    l->warming = false;
    tec_kv_pool_drop(pool, region);
}

void tec_loop_reset(struct tec_loop *l)
{
    const struct tec_tick none = {.next_ns = INT64_MAX};
    l->tick = &none;
    for (int i = 0; i < l->n_live; i++)
        tec_requests_end(l, &l->requests[i], "reset", 2, tec_loop_now(l));
    tec_requests_sweep(l);
    l->tick = NULL;
    tec_ring_reset(l);
    l->n_recent = 0;
    l->frame = 0;
    l->next_id = 0;
    if (l->o.edges)
        tec_text_edges_restart(l->o.edges);
    memset(l->texts_given, 0, sizeof l->texts_given);
    memset(&l->result, 0, sizeof l->result);
}

static enum tec_status take_memory(struct tec_loop *l, struct tec_error *err)
{
    const struct tec_plan *p = l->o.plan;
    size_t request_slots = (size_t)l->request_slots + 1;
    l->requests = TEC_NEW(&l->arena, request_slots, struct tec_request);
    l->request_slot_taken = TEC_NEW(&l->arena, request_slots, bool);
    l->n_texts = 2 * (int)request_slots;
    l->texts = TEC_NEW(&l->arena, (size_t)l->n_texts, struct tec_utterance);
    l->view_rows = TEC_NEW(&l->arena, request_slots, struct tec_request_view);
    size_t chunk = (size_t)p->model->flow.horizon * (size_t)p->model->flow.dim;
    l->chunk = TEC_NEW(&l->arena, chunk + (size_t)p->spec.stages, float);
    l->tokens = TEC_NEW(&l->arena, request_slots * ((size_t)l->max_k + 1), int);
    l->made = TEC_NEW(&l->arena, request_slots, int);
    l->text_ended = TEC_NEW(&l->arena, (size_t)l->n_texts, int64_t);
    l->prompts = TEC_NEW(&l->arena, request_slots * (size_t)p->spec.prompt_tokens + 1, int);
    l->prompt = TEC_NEW(&l->arena, (size_t)p->spec.text_tokens + 1, int);
    l->late_us = TEC_NEW(&l->arena, (size_t)l->o.topology->n_inputs + 1, int64_t);
    bool ok = l->prompts && l->prompt && l->late_us && l->requests && l->request_slot_taken &&
              l->texts && l->view_rows && l->chunk && l->tokens && l->made && l->text_ended;
    for (int i = 0; ok && i < l->n_texts; i++) {
        l->texts[i].id = -1;
        l->texts[i].tokens = TEC_NEW(&l->arena, (size_t)l->new_tokens + 1, int);
        ok = l->texts[i].tokens != NULL;
    }
    ok = ok && tec_rank_memory(l);
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a frame loop");
}

enum tec_status tec_loop_create(struct tec_loop **out, const struct tec_loop_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_loop *l = tec_heap_get(heap, sizeof *l);
    if (!l)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a frame loop");
    l->o = *options;
    l->heap = heap;
    tec_arena_init(&l->arena, heap);
    enum tec_status status = tec_spaces_init(l, err);
    if (status == TEC_OK)
        status = take_memory(l, err);
    if (status != TEC_OK) {
        tec_loop_destroy(l);
        return status;
    }
    tec_ring_reset(l);
    tec_loop_prepare_view(l);
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

void tec_loop_set_table(struct tec_loop *l, const struct tec_cost_table *table)
{
    l->table = table;
}

int tec_loop_live(const struct tec_loop *l)
{
    return l->n_live + (l->o.ring ? l->ring.n : 0);
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
