/* engine.c - opens and closes an engine: models, budget, session, weights, plans, loop and warm-up.
 *
 * Runs on the thread that opens the engine. The order puts the cheap refusals first: sizes are
 * measured on a device that takes no memory, then the budget, tokenizers, memory and robot are
 * checked, and only then are gigabytes of weights read. Closing takes the reverse order.
 * tec_engine_measure stops before device memory is taken, and tec_engine_simulate puts a virtual
 * device in place of the real one. */
#include "graph/run/engine/engine_own.h"

#include "graph/run/launch/interpret.h"
#include "graph/run/session/session_given.h"
#include "graph/run/session/session_robot.h"

#include <stdio.h>
#include <string.h>

static int barriers_of(const struct tec_program *program)
{
    int n = 0;
    for (int i = 0; i < program->n_steps; i++)
        n += program->steps[i].kind != TEC_STEP_CALL || program->steps[i].call.barrier;
    return n;
}

static int branch_of(const struct tec_program *program)
{
    int n = 0;
    for (int i = 0; i < program->n_steps; i++)
        n += program->steps[i].branch;
    return n;
}

/* All plans on a device that only measures: no weight is read, no memory is taken. *at: the chain
 * that failed. */
static enum tec_status make_dry(struct tec_engine *e, int *at, struct tec_error *err)
{
    *at = 0;
    TEC_TRY(tec_engine_open_devices(e, true, err));
    for (; *at < e->n_chains; ++*at)
        TEC_TRY(tec_engine_plan_chain(e, &e->chains[*at], true, 0, 0, err));
    *at = 0;
    tec_engine_show_first(e);
    return TEC_OK;
}

static void drop_dry(struct tec_engine *e)
{
    tec_engine_drop_plans(e);
    tec_engine_close_devices(e);
    tec_engine_show_first(e);
}

/* Returns the place that declares the rows of a chain's prefill; NULL = there is none. */
static const struct tec_where *where_rows(const struct tec_pipeline *p, int chain)
{
    int prefill = p->chains[chain].prefill;
    if (prefill < 0 || p->nodes[prefill].writes.index < 0)
        return NULL;
    return &p->resources[p->nodes[prefill].writes.index].where_size;
}

/* The weights of a model count once. */
static void add_bytes(struct tec_byte_plan *sum, const struct tec_byte_plan *b, int64_t workspace,
                      bool loaded)
{
    int64_t weights = loaded ? 0 : b->weights;
    sum->weights += weights;
    sum->tables += b->tables;
    sum->kv += b->kv;
    sum->activations += b->activations;
    sum->frames += b->frames;
    sum->constants += b->constants;
    sum->taps += b->taps;
    sum->workspace += workspace;
    sum->captures += b->captures;
    sum->total += b->total - b->workspace + workspace - b->weights + weights;
}

static void add_plan(const struct tec_engine *e, int chain, struct tec_measured *out,
                     struct tec_arena *arena)
{
    const struct tec_plan *plan = e->chains[chain].plan;
    const char *name = e->options.pipeline->chains[chain].name;
    bool first = chain == 0, loaded = false, own = true;
    for (int i = 0; i < chain; i++) {
        loaded |= e->chains[i].of == e->chains[chain].of;
        own &= e->chains[i].of->device != e->chains[chain].of->device;
    }
    int64_t before = out->bytes.total;
    /* once for a device, as its last plan has left it */
    int64_t workspace = own ? tec_device_workspace(e->chains[chain].of->device) : 0;
    add_bytes(&out->bytes, &plan->bytes, workspace, loaded);
    out->needs[tec_engine_device_of(e, e->chains[chain].of)] += out->bytes.total - before;
    for (int i = 0; i < plan->n_parts; i++) {
        const struct tec_plan_part *part = &plan->parts[i];
        int at = out->parts++;
        out->part_names[at] = first ? tec_arena_strdup(arena, part->name)
                                    : tec_arena_printf(arena, "%s/%s", name, part->name);
        out->commands[at] = tec_capture_commands(part->capture);
        out->barriers[at] = barriers_of(&part->program);
        out->branch[at] = branch_of(&part->program);
        out->slices[at] = part->slices ? part->n_slices : 0;
        out->activations[at] = part->program.planned;
        out->captures += 1 + out->slices[at];
    }
}

/* The captures that the points of the pipeline's axes, and slices, make: not the pieces of a
 * memory's prompt, of which no point makes more or fewer. */
static int captures_of_points(const struct tec_engine *e, const struct tec_measured *m)
{
    int n = m->captures;
    for (int chain = 0; chain < e->n_chains; chain++)
        for (int i = 0; i < e->chains[chain].plan->n_parts; i++) {
            const struct tec_plan_part *part = &e->chains[chain].plan->parts[i];
            n -= part->kind == TEC_PART_RECALL && part->slices ? part->n_slices : 0;
            n -= part->kind == TEC_PART_RECALL_BRANCH ? 1 + part->n_slices : 0;
        }
    return n;
}

/* Check capture.max_graphs. The number of slices is known only once the model is. */
static enum tec_status check_captures(const struct tec_engine *e, const struct tec_measured *m,
                                      struct tec_error *err)
{
    const struct tec_decl_capture *c = &e->options.pipeline->capture;
    int n = captures_of_points(e, m);
    if (e->n_chains == 1 || !c->max_graphs || n <= c->max_graphs)
        return TEC_OK;
    return tec_where_fail(err, TEC_MALFORMED, &c->where,
                          "%d captures, the most is %d: give capture.slices, or raise max_graphs",
                          n, c->max_graphs);
}

/* Sizes from the checkpoint's headers; a model without one is sized by its description. */
static enum tec_status measure(struct tec_engine *e, struct tec_measured *out,
                               struct tec_arena *arena, struct tec_error *err)
{
    int at;
    enum tec_status status = make_dry(e, &at, err);
    if (status == TEC_OK) {
        out->spec = e->plan->spec; /* completed */
        out->kv_token = tec_kv_token_bytes(&e->plan->space.shape);
        for (int i = 0; i < e->n_chains; i++) {
            e->chains[i].pictures = e->chains[i].plan->spec.pictures;
            if (!e->chains[i].joins)
                add_plan(e, i, out, arena);
        }
        tec_engine_measure_memories(e, out);
        out->host = out->bytes.captures + out->memory.staging + out->memory.kept;
        status = check_captures(e, out, err);
    }
    drop_dry(e);
    const struct tec_where *where = where_rows(e->options.pipeline, at);
    if (status == TEC_INVALID && where && where->file && err) { /* the file's sizes are */
        const struct tec_error plain = *err;
        return tec_fail(err, TEC_MALFORMED, "%s:%d: %.300s", where->file, where->line,
                        plain.message);
    }
    return status;
}

static enum tec_status load_weights(struct tec_engine *e, const struct tec_measured *measured,
                                    struct tec_error *err)
{
    int64_t before = 0;
    for (int i = 0; i < e->n_chains; i++) {
        struct tec_engine_chain *c = &e->chains[i];
        bool loaded = c->of->weights != NULL;
        TEC_TRY(tec_engine_plan_chain(e, c, false, before, measured->bytes.weights, err));
        TEC_TRY(tec_choices_upload(&c->choices, c->plan, &e->arena, err));
        before += loaded ? 0 : c->of->weights->bytes;
    }
    tec_engine_show_first(e);
    return TEC_OK;
}

static enum tec_status open_tokenizers(struct tec_engine *e, struct tec_error *err)
{
    for (int i = 0; i < e->n_models; i++)
        TEC_TRY(tec_engine_open_tokenizer(e, &e->models[i], err));
    tec_engine_show_first(e);
    return TEC_OK;
}

static bool takes_given(const struct tec_plan_spec *s)
{
    bool any = false;
    for (int i = 0; i < s->n_actions; i++)
        any |= s->actions[i].fixed > 0 || s->actions[i].guidance > 0.0F;
    return any;
}

/* Check that given actions fit the robot. The session checks it too, but `check` may not open
 * one. */
static enum tec_status check_given(const struct tec_engine *e, int chain, struct tec_arena *arena,
                                   struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    const struct tec_session_options s = {.pipeline = o->pipeline,
                                          .chain = chain,
                                          .model = e->chains[chain].of->model,
                                          .checkpoint = e->chains[chain].of->checkpoint,
                                          .root = o->root};
    const struct tec_decl_robot *declared = tec_session_declared(&s);
    struct tec_robot *robot = NULL;
    struct tec_given given;
    struct tec_guiding guiding;
    bool plain;
    if (!s.checkpoint && !(declared && declared->description))
        return TEC_OK; /* the robot may be the checkpoint's, which is not here */
    TEC_TRY(tec_session_find_robot(&robot, &plain, &s, arena, err));
    for (int i = 0; i < TEC_MAX_ACTIONS; i++) {
        const struct tec_decl_node *action = tec_pipeline_action(o->pipeline, i);
        if (!action || action->chain != chain)
            continue;
        TEC_TRY(
            tec_given_init(&given, o->pipeline, action->prefix.index, robot, plain, arena, err));
        TEC_TRY(tec_guiding_init(&guiding, o->pipeline, action, robot, plain, arena, err));
    }
    return TEC_OK;
}

/* Read checkpoints and descriptions, and measure what the pipeline takes with them. */
static enum tec_status describe(struct tec_engine *e, struct tec_measured *out,
                                struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    memset(out, 0, sizeof *out);
    TEC_TRY(tec_engine_list_models(e, err));
    for (int i = 0; i < e->n_models; i++)
        TEC_TRY(tec_engine_describe_model(e, &e->models[i], err));
    for (int i = 0; i < e->n_chains; i++)
        TEC_TRY(tec_engine_describe_chain(e, i, err));
    TEC_TRY(tec_engine_describe_drafts(e, err));
    tec_engine_join_rings(e);
    tec_engine_share_pictures(e);
    tec_engine_show_first(e);
    for (int i = 0; i < e->n_chains; i++)
        if (takes_given(&e->chains[i].spec))
            TEC_TRY(check_given(e, i, arena, err));
    struct tec_device_options *device = &e->options.device;
    if (!o->interpret)
        device->beside = tec_partition_lanes(o->pipeline, tec_device_threads(device));
    e->chains[0].spec.beside = device->beside > 0;
    for (int i = 0; i < e->n_chains; i++) {
        e->chains[i].spec.branches = o->branches;
        device->branches |=
            !o->interpret && e->chains[i].spec.segments > 0 && !e->chains[i].spec.compares;
    }
    return measure(e, out, arena, err);
}

/* What is tried here is the first frame's observation, which counts once. */
static enum tec_status try_first(struct tec_engine *e, struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    if (!o->prepared)
        return TEC_OK;
    for (int i = 0; i < e->n_memories; i++)
        tec_memory_try(e->memories[i], true);
    enum tec_status status = o->prepared(o->prepared_user, e->session, err);
    for (int i = 0; i < e->n_memories; i++)
        tec_memory_try(e->memories[i], false);
    return status;
}

static enum tec_status open_all(struct tec_engine *e, struct tec_error *err)
{
    struct tec_measured measured;
    TEC_TRY(describe(e, &measured, &e->arena, err));
    TEC_TRY(tec_engine_open_devices(e, false, err));
    TEC_TRY(tec_engine_check_budget(e, &measured, err));
    TEC_TRY(tec_engine_check_tiers(e, &measured, err));
    TEC_TRY(open_tokenizers(e, err));
    for (int i = 0; i < e->n_chains; i++)
        TEC_TRY(tec_engine_open_memories(e, i, err));
    TEC_TRY(tec_engine_open_sessions(e, err));
    TEC_TRY(try_first(e, err));
    TEC_TRY(load_weights(e, &measured, err));
    struct tec_executor executors[TEC_MAX_CHAINS];
    for (int i = 0; i < e->n_chains; i++)
        TEC_TRY(tec_engine_make_executor(e, &e->chains[i], &executors[i], err));
    if (measured.spec.beside) {
        TEC_TRY(tec_partitions_create(&e->partitions, e->plan, &executors[0], e->heap, err));
        executors[0] = tec_partitions_executor(e->partitions);
    }
    TEC_TRY(tec_engine_make_loop(e, executors, err));
    return tec_engine_warm(e, err);
}

static enum tec_status create(struct tec_engine **out, const struct tec_engine_options *options,
                              struct tec_heap *heap, struct tec_error *err)
{
    struct tec_engine *e = tec_heap_get(heap, sizeof *e);
    *out = e;
    if (!e)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an engine");
    e->options = *options;
    e->heap = heap;
    tec_arena_init(&e->arena, heap);
    tec_arena_init(&e->reading, heap);
    return TEC_OK;
}

static enum tec_status keep(struct tec_engine **out, struct tec_engine *e, enum tec_status status)
{
    if (status == TEC_OK)
        *out = e;
    else
        tec_engine_close(e);
    return status;
}

enum tec_status tec_engine_open(struct tec_engine **out, const struct tec_engine_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_engine *e;
    TEC_TRY(create(&e, options, heap, err));
    enum tec_status status = open_all(e, err);
    if (status != TEC_OK && tec_engine_failure(e, NULL) != TEC_OK)
        status = tec_engine_failure(e, err); /* what it would not give is not missing */
    return keep(out, e, status);
}

enum tec_status tec_engine_pack(int *models, const struct tec_engine_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_engine *e;
    struct tec_measured measured;
    TEC_TRY(create(&e, options, heap, err));
    enum tec_status status = describe(e, &measured, &e->arena, err);
    if (status == TEC_OK)
        status = tec_engine_open_devices(e, false, err);
    if (status == TEC_OK)
        status = tec_engine_check_budget(e, &measured, err);
    if (status == TEC_OK)
        status = load_weights(e, &measured, err);
    *models = e->n_models;
    tec_engine_close(e);
    return status;
}

enum tec_status tec_engine_plan(struct tec_engine **out, const struct tec_engine_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_engine *e;
    struct tec_measured measured;
    int at;
    TEC_TRY(create(&e, options, heap, err));
    enum tec_status status = describe(e, &measured, &e->arena, err);
    if (status == TEC_OK)
        status = make_dry(e, &at, err);
    return keep(out, e, status);
}

enum tec_status tec_engine_simulate(struct tec_engine **out,
                                    const struct tec_engine_options *options,
                                    struct tec_virtual device[TEC_MAX_CHAINS],
                                    struct tec_heap *heap, struct tec_error *err)
{
    struct tec_engine *e;
    TEC_TRY(tec_engine_plan(&e, options, heap, err));
    struct tec_executor executors[TEC_MAX_CHAINS];
    for (int i = 0; i < e->n_chains; i++) {
        if (i) {
            device[i] = device[0];
            device[i].chain = i;
        }
        device[i].plan = e->chains[i].plan;
        executors[i] = tec_executor_virtual(&device[i]);
    }
    return keep(out, e, tec_engine_make_loop(e, executors, err));
}

/* A description that a checkpoint completes cannot be read without one, and the robot of a pipeline
 * that names none may be in it. Texts alone need none. */
static bool knows_robot(const struct tec_engine *e)
{
    const struct tec_pipeline *p = e->options.pipeline;
    bool texts = true;
    for (int i = 0; i < p->n_inputs; i++)
        texts &= p->inputs[i].kind == TEC_INPUT_TEXT || p->inputs[i].kind == TEC_INPUT_SEGMENTS;
    bool read = p->n_robots > 0;
    for (int i = 0; i < p->n_robots; i++)
        read &= p->robots[i].description != NULL;
    if (e->checkpoint || read)
        return true;
    return !p->n_robots && (texts || !e->options.absent);
}

/* Open a session to find errors in the tokenizer, statistics, robot, template or inputs. */
static enum tec_status try_session(struct tec_engine *e, struct tec_measured *out,
                                   struct tec_error *err)
{
    out->robot = knows_robot(e);
    if (!out->robot)
        return TEC_OK;
    TEC_TRY(open_tokenizers(e, err));
    return tec_engine_open_sessions(e, err);
}

enum tec_status tec_engine_measure(struct tec_measured *out,
                                   const struct tec_engine_options *options, struct tec_heap *heap,
                                   struct tec_arena *arena, struct tec_error *err)
{
    struct tec_engine *e;
    TEC_TRY(create(&e, options, heap, err));
    enum tec_status status = describe(e, out, arena, err);
    if (status != TEC_OK && options->found && e->chains[0].spec.text_tokens > 0) {
        out->spec = e->chains[0].spec; /* what else there is */
        (void)try_session(e, out, NULL);
    }
    if (status == TEC_OK)
        status = try_session(e, out, err);
    tec_engine_close(e);
    return status;
}

void tec_engine_close(struct tec_engine *e)
{
    if (!e)
        return;
    tec_loop_destroy(e->loop);
    tec_partitions_destroy(e->partitions);
    tec_engine_drop_prompts(e);
    for (int i = 0; i < TEC_MAX_SESSIONS; i++)
        tec_session_destroy(e->sessions[i]);
    tec_engine_close_memories(e);
    tec_engine_drop_plans(e);
    tec_engine_close_devices(e);
    for (int i = 0; i < e->n_models; i++)
        tec_engine_close_model(&e->models[i]);
    tec_arena_finish(&e->reading);
    tec_arena_finish(&e->arena);
    tec_heap_put(e->heap, e);
}

const struct tec_tokenizer *tec_engine_tokenizer(const struct tec_engine *e, int decoder)
{
    const struct tec_loop_options *o = e->loop ? tec_loop_settings(e->loop) : NULL;
    int chain = o && decoder >= 0 && decoder < o->n_decoders ? o->decoders[decoder].chain : 0;
    return e->chains[chain].of->tokenizer;
}

enum tec_status tec_engine_text(const struct tec_engine *e, const struct tec_utterance *text, int n,
                                struct tec_arena *arena, char **out, struct tec_error *err)
{
    size_t bytes;
    const struct tec_tokenizer *tokenizer = tec_engine_tokenizer(e, text->decoder);
    *out = NULL;
    if (!tokenizer)
        return TEC_OK;
    return tec_tokenizer_decode(tokenizer, text->tokens, (size_t)n, true, arena, out, &bytes, err);
}
