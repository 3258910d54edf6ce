#include "graph/run/engine.h"

#include "graph/run/engine_loop.h"
#include "graph/run/session_given.h"
#include "graph/run/session_robot.h"

#include <stdio.h>
#include <string.h>

enum { WARM_FRAMES = 2, MAX_PATH = 4096 };

static void progress(const struct tec_engine_options *o, const char *what, int64_t done,
                     int64_t total)
{
    if (o->progress)
        o->progress(o->user, what, done, total);
}

/* Image features of a LeRobot configuration, in its order; NULL when it has none. */
static json_t *camera_features(const struct tec_checkpoint *c)
{
    json_t *slots = json_array(), *feature;
    const char *name;
    json_object_foreach(json_object_get(c->config, "input_features"), name, feature)
    {
        const char *type = json_string_value(json_object_get(feature, "type"));
        if (type && strcmp(type, "VISUAL") == 0)
            json_array_append_new(slots, json_string(name));
    }
    if (json_array_size(slots) > 0)
        return slots;
    json_decref(slots);
    return NULL;
}

/* What the description cannot know: the chunk that the pipeline declares, a checkpoint's cameras.
 */
static json_t *overrides_of(const struct tec_engine_options *o, const struct tec_checkpoint *c)
{
    const struct tec_pipeline *p = o->pipeline;
    json_t *given = json_object();
    bool own_robot = p->robot != NULL;
    json_t *slots = c && c->layout == TEC_LAYOUT_LEROBOT && !own_robot ? camera_features(c) : NULL;
    if (slots)
        json_object_set_new(given, "slots", slots);
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->kind == TEC_DECL_ACTION && n->out.buffer >= 0 &&
            p->resources[n->out.buffer].shape.n == 2)
            json_object_set_new(given, "horizon",
                                json_integer(p->resources[n->out.buffer].shape.item[0]));
    }
    const struct tec_decl_node *ring = tec_pipeline_ring(p);
    if (ring) { /* a chunk is one row of tokens */
        json_object_set_new(given, "horizon", json_integer(1));
        json_object_set_new(given, "count", json_integer(p->resources[ring->kv.index].stages));
    }
    return given;
}

static enum tec_status open_model(struct tec_model **model, const struct tec_engine_options *o,
                                  struct tec_checkpoint *c, struct tec_heap *heap,
                                  struct tec_error *err)
{
    char root[MAX_PATH];
    snprintf(root, sizeof root, "%s/pipelines/models", o->root);
    json_t *given = overrides_of(o, c);
    const struct tec_model_choice choice = {.root = root,
                                            .arch = o->pipeline->models[0].arch,
                                            .size = o->size ? o->size : "full",
                                            .overrides = given,
                                            .checkpoint = c};
    enum tec_status status = tec_model_open(model, &choice, heap, err);
    json_decref(given);
    return status;
}

static bool wants_bf16(const struct tec_engine_options *o)
{
    if (o->dtype)
        return strcmp(o->dtype, "bf16") == 0;
    return o->pipeline->models[0].dtype == TEC_DECL_BF16;
}

static int barriers_of(const struct tec_program *program)
{
    int n = 0;
    for (int i = 0; i < program->n_steps; i++)
        n += program->steps[i].kind != TEC_STEP_CALL || program->steps[i].call.barrier;
    return n;
}

/* A plan on a device that only measures: no weight is read, no memory is taken. */
static enum tec_status make_dry(struct tec_engine *e, const struct tec_plan_spec *spec,
                                struct tec_error *err)
{
    struct tec_device_options device = e->options.device;
    device.measure = true;
    TEC_TRY(tec_device_open(&e->device, &device, e->heap, err));
    const struct tec_weight_source source = {.checkpoint = e->checkpoint, .dry = true};
    const struct tec_weights_options w = {.model = e->model,
                                          .source = source,
                                          .device = e->device,
                                          .bf16 = wants_bf16(&e->options),
                                          .language = spec->seats > 0 || spec->stages > 0};
    TEC_TRY(tec_weights_load(&e->weights, &w, e->heap, err));
    const struct tec_plan_inputs inputs = {.spec = spec,
                                           .model = e->model,
                                           .weights = e->weights,
                                           .device = e->device,
                                           .source = source};
    return tec_plan_create(&e->plan, &inputs, e->heap, err);
}

static void drop_dry(struct tec_engine *e)
{
    tec_plan_destroy(e->plan);
    tec_weights_close(e->weights);
    tec_device_close(e->device);
    e->plan = NULL;
    e->weights = NULL;
    e->device = NULL;
}

/* Where the rows of a frame are declared; NULL = nowhere. */
static const struct tec_where *where_rows(const struct tec_pipeline *p)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == TEC_DECL_PREFILL && p->nodes[i].writes.index >= 0)
            return &p->resources[p->nodes[i].writes.index].where;
    return NULL;
}

/* Sizes from the checkpoint's headers; a model without one is sized by its description. */
static enum tec_status measure(struct tec_engine *e, struct tec_measured *out,
                               struct tec_arena *arena, struct tec_error *err)
{
    enum tec_status status = make_dry(e, &out->spec, err);
    if (status == TEC_OK) {
        const struct tec_plan *plan = e->plan;
        out->spec = plan->spec; /* completed */
        out->bytes = plan->bytes;
        const struct tec_kv_shape *kv = &plan->space.shape;
        out->captures = plan->n_parts;
        out->kv_token = tec_kv_token_bytes(kv);
        for (int i = 0; i < plan->n_parts; i++) {
            out->part_names[i] = tec_arena_strdup(arena, plan->parts[i].name);
            out->commands[i] = tec_capture_commands(plan->parts[i].capture);
            out->barriers[i] = barriers_of(&plan->parts[i].program);
            out->activations[i] = plan->parts[i].program.planned;
        }
    }
    drop_dry(e);
    const struct tec_where *where = where_rows(e->options.pipeline);
    if (status == TEC_INVALID && where && where->file && err) { /* the file's sizes are */
        const struct tec_error plain = *err;
        return tec_fail(err, TEC_MALFORMED, "%s:%d: %.300s", where->file, where->line,
                        plain.message);
    }
    return status;
}

static enum tec_status open_checkpoint(struct tec_checkpoint **c,
                                       const struct tec_engine_options *o, struct tec_heap *heap,
                                       struct tec_error *err)
{
    *c = NULL;
    if (o->random)
        return TEC_OK;
    const char *path = o->weights ? o->weights : o->pipeline->models[0].weights;
    if (!path)
        return tec_fail(
            err, TEC_NOT_FOUND,
            "pipeline '%s' names no weights: give --weights DIR or --random-weights SEED",
            o->pipeline->name);
    return tec_checkpoint_open(c, path, heap, err);
}

/* MemAvailable of this machine in bytes, or -1. */
static int64_t available_memory(void)
{
    char line[128];
    long long kib = -1;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && kib < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kib) != 1)
            kib = -1;
    if (f)
        fclose(f);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
}

/* Before anything large is taken: the pipeline's budget, and what is free where it will lie. */
static enum tec_status check_memory(const struct tec_engine *e, const struct tec_measured *m,
                                    struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    const double gib = 1024.0 * 1024.0 * 1024.0;
    bool host = tec_device_reads_host(e->device);
    int64_t budget = o->pipeline->memory.device;
    int64_t there = host ? available_memory() : tec_device_room(e->device);
    double need = (double)m->bytes.total / gib, weights = (double)m->bytes.weights / gib;
    if (budget && m->bytes.total > budget)
        return tec_fail(err, TEC_NO_MEMORY,
                        "%s:%d: static plan needs %.2f GiB (weights %.2f + rest %.2f), budget is "
                        "%.2f GiB",
                        o->pipeline->memory.where.file, o->pipeline->memory.where.line, need,
                        weights, need - weights, (double)budget / gib);
    if (there >= 0 && m->bytes.total - m->bytes.workspace > there)
        return tec_fail(err, TEC_NO_MEMORY,
                        "static plan needs %.2f GiB (weights %.2f), the %s has %.2f GiB free", need,
                        weights, host ? "machine" : "device", (double)there / gib);
    return TEC_OK;
}

struct load_report {
    const struct tec_engine_options *options;
    int64_t total;
};

static void weights_progress(void *user, int64_t bytes)
{
    const struct load_report *r = user;
    progress(r->options, "weights", bytes, r->total);
}

static enum tec_status load_weights(struct tec_engine *e, const struct tec_measured *measured,
                                    struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    const struct tec_weight_source source = {.checkpoint = e->checkpoint, .seed = o->seed};
    struct load_report report = {o, measured->bytes.weights};
    const struct tec_weights_options w = {.model = e->model,
                                          .source = source,
                                          .device = e->device,
                                          .bf16 = wants_bf16(o),
                                          .language =
                                              measured->spec.seats > 0 || measured->spec.stages > 0,
                                          .progress = weights_progress,
                                          .user = &report};
    TEC_TRY(tec_weights_load(&e->weights, &w, e->heap, err));
    progress(o, "captures", 0, 1);
    const struct tec_plan_inputs in = {.spec = &measured->spec,
                                       .model = e->model,
                                       .weights = e->weights,
                                       .source = source,
                                       .device = e->device};
    TEC_TRY(tec_plan_create(&e->plan, &in, e->heap, err));
    return tec_choices_upload(&e->choices, e->plan, &e->arena, err);
}

static enum tec_status open_session(struct tec_engine *e, const struct tec_plan_spec *spec,
                                    struct tec_error *err)
{
    const struct tec_session_options s = {.pipeline = e->options.pipeline,
                                          .model = e->model,
                                          .checkpoint = e->checkpoint,
                                          .tokenizer = e->tokenizer,
                                          .root = e->options.root,
                                          .max_text = spec->text_tokens,
                                          .max_pictures = spec->pictures,
                                          .seed = e->options.seed};
    return tec_session_create(&e->session, &s, e->heap, err);
}

/* Every part has run before the first frame: costs are known, memory is touched. */
static enum tec_status warm(struct tec_engine *e, struct tec_error *err)
{
    const struct tec_model *m = e->model;
    size_t size = (size_t)m->vision.image_size,
           chunk = (size_t)m->flow.horizon * (size_t)m->flow.dim;
    uint8_t *black = TEC_NEW(&e->arena, size * size * 3, uint8_t);
    int *ids = TEC_NEW(&e->arena, (size_t)e->plan->spec.text_tokens, int);
    float *zeros = TEC_NEW(&e->arena, chunk, float);
    if (!black || !ids || !zeros)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the first frame");
    int pictures = e->plan->spec.pictures;
    struct tec_frame_input input = {
        .prefix = {.n_pictures = pictures, .n_text = e->plan->spec.text_tokens, .ids = ids},
        .noise = zeros};
    for (int i = 0; i < pictures; i++)
        input.prefix.picture[i] = black;
    progress(&e->options, "warm-up", 0, WARM_FRAMES);
    tec_loop_warm(e->loop, &input, WARM_FRAMES);
    return tec_device_failure(e->device, err);
}

/* Do actions that are given fit the robot? Looked at here too, because `check` opens no session. */
static enum tec_status check_given(const struct tec_engine *e, struct tec_arena *arena,
                                   struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    const struct tec_session_options s = {
        .pipeline = o->pipeline, .model = e->model, .checkpoint = e->checkpoint, .root = o->root};
    struct tec_robot *robot = NULL;
    struct tec_given given;
    bool plain;
    if (!e->checkpoint && !o->pipeline->robot)
        return TEC_OK; /* the robot may be the checkpoint's, which is not here */
    TEC_TRY(tec_session_find_robot(&robot, &plain, &s, arena, err));
    return tec_given_init(&given, o->pipeline, robot, plain, arena, err);
}

static enum tec_status open_tokenizer(struct tec_engine *e, struct tec_error *err)
{
    const char *path = e->options.tokenizer;
    if (e->tokenizer)
        return TEC_OK;
    if (!path && e->checkpoint)
        path = e->checkpoint->tokenizer;
    if (path)
        return tec_tokenizer_open(&e->tokenizer, path, e->heap, err);
    if (e->options.random)
        return TEC_OK;
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s has no tokenizer: give --tokenizer tokenizer.model or tokenizer.json",
                    e->checkpoint->path);
}

/* Lists of texts, whose tokens say how large they are. */
static enum tec_status read_lists(struct tec_engine *e, struct tec_plan_spec *spec,
                                  struct tec_error *err)
{
    if (!tec_choices_any(e->options.pipeline))
        return TEC_OK;
    TEC_TRY(open_tokenizer(e, err));
    TEC_TRY(tec_choices_create(&e->choices, e->options.pipeline, e->model, e->tokenizer, &e->arena,
                               err));
    tec_choices_fill(&e->choices, spec);
    return TEC_OK;
}

/* Checkpoint and model, and what the pipeline takes with them. */
static enum tec_status describe(struct tec_engine *e, struct tec_measured *out,
                                struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    memset(out, 0, sizeof *out);
    TEC_TRY(open_checkpoint(&e->checkpoint, o, e->heap, err));
    TEC_TRY(open_model(&e->model, o, e->checkpoint, e->heap, err));
    TEC_TRY(tec_spec_from_pipeline(&out->spec, o->pipeline, e->model, e->heap, err));
    TEC_TRY(read_lists(e, &out->spec, err));
    if (out->spec.fixed)
        TEC_TRY(check_given(e, arena, err));
    struct tec_device_options *device = &e->options.device;
    device->beside = tec_partition_lanes(o->pipeline, tec_device_threads(device));
    out->spec.beside = device->beside > 0;
    return measure(e, out, arena, err);
}

static enum tec_status open_all(struct tec_engine *e, struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    struct tec_measured measured;
    TEC_TRY(describe(e, &measured, &e->arena, err));
    TEC_TRY(tec_device_open(&e->device, &e->options.device, e->heap, err));
    TEC_TRY(check_memory(e, &measured, err));
    TEC_TRY(open_tokenizer(e, err));
    TEC_TRY(open_session(e, &measured.spec, err));
    if (o->prepared)
        TEC_TRY(o->prepared(o->prepared_user, e->session, err));
    TEC_TRY(load_weights(e, &measured, err));
    struct tec_executor executor = tec_executor_real(e->plan);
    if (measured.spec.beside) {
        TEC_TRY(tec_partitions_create(&e->partitions, e->plan, e->heap, err));
        executor = tec_partitions_executor(e->partitions);
    }
    TEC_TRY(tec_engine_make_loop(e, &executor, err));
    return warm(e, err);
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
    if (status != TEC_OK && e->device && tec_device_failure(e->device, NULL) != TEC_OK)
        status = tec_device_failure(e->device, err); /* what it would not give is not missing */
    return keep(out, e, status);
}

enum tec_status tec_engine_plan(struct tec_engine **out, const struct tec_engine_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_engine *e;
    struct tec_measured measured;
    TEC_TRY(create(&e, options, heap, err));
    enum tec_status status = describe(e, &measured, &e->arena, err);
    if (status == TEC_OK)
        status = make_dry(e, &measured.spec, err);
    return keep(out, e, status);
}

enum tec_status tec_engine_simulate(struct tec_engine **out,
                                    const struct tec_engine_options *options,
                                    struct tec_virtual *device, struct tec_heap *heap,
                                    struct tec_error *err)
{
    struct tec_engine *e;
    TEC_TRY(tec_engine_plan(&e, options, heap, err));
    device->plan = e->plan;
    const struct tec_executor executor = tec_executor_virtual(device);
    return keep(out, e, tec_engine_make_loop(e, &executor, err));
}

/* What open would find wrong with a checkpoint's tokenizer, statistics or robot. */
static enum tec_status try_session(struct tec_engine *e, const struct tec_plan_spec *spec,
                                   struct tec_error *err)
{
    if (!e->checkpoint)
        return TEC_OK;
    TEC_TRY(open_tokenizer(e, err));
    return open_session(e, spec, err);
}

enum tec_status tec_engine_measure(struct tec_measured *out,
                                   const struct tec_engine_options *options, struct tec_heap *heap,
                                   struct tec_arena *arena, struct tec_error *err)
{
    struct tec_engine *e;
    TEC_TRY(create(&e, options, heap, err));
    enum tec_status status = describe(e, out, arena, err);
    if (status == TEC_OK)
        status = try_session(e, &out->spec, err);
    tec_engine_close(e);
    return status;
}

void tec_engine_close(struct tec_engine *e)
{
    if (!e)
        return;
    tec_loop_destroy(e->loop);
    tec_partitions_destroy(e->partitions);
    tec_session_destroy(e->session);
    tec_plan_destroy(e->plan);
    tec_weights_close(e->weights);
    tec_device_close(e->device);
    tec_tokenizer_close(e->tokenizer);
    tec_model_close(e->model);
    tec_checkpoint_close(e->checkpoint);
    tec_arena_finish(&e->reading);
    tec_arena_finish(&e->arena);
    tec_heap_put(e->heap, e);
}

enum tec_status tec_engine_text(const struct tec_engine *e, const struct tec_utterance *text, int n,
                                struct tec_arena *arena, char **out, struct tec_error *err)
{
    size_t bytes;
    *out = NULL;
    if (!e->tokenizer)
        return TEC_OK;
    return tec_tokenizer_decode(e->tokenizer, text->tokens, (size_t)n, true, arena, out, &bytes,
                                err);
}
