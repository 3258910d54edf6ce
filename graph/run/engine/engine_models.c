/* engine_models.c - opens the models of an engine: checkpoint, description, tokenizer, sizes,
 * weights and plan.
 *
 * Runs at load, model by model, then chain by chain. Describing takes no device memory; planning
 * runs the same code for a dry run that counts bytes and for the real one. The weights of a model
 * are loaded for the first of its chains and used by all. The first chain makes the frames, so the
 * engine shows its objects under their short names. */
#include "graph/load/pipeline_texts.h"
#include "graph/run/engine/engine_own.h"

#include "base/store/find.h"
#include "base/store/kind.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PATH = 4096 };

static bool first(const struct tec_engine *e, const struct tec_engine_model *m)
{
    return m == e->models;
}

/* The engine's index of the model that has this index in the pipeline; its next one if it has
 * none. */
static int find_model(const struct tec_engine *e, int index)
{
    int i = 0;
    while (i < e->n_models && e->models[i].index != index)
        i++;
    return i;
}

enum tec_status tec_engine_list_models(struct tec_engine *e, struct tec_error *err)
{
    const struct tec_pipeline *p = e->options.pipeline;
    for (int i = 0; i < p->n_chains; i++) {
        const struct tec_decl_chain *chain = &p->chains[i];
        int m = find_model(e, chain->model);
        if (m == e->n_models)
            e->models[e->n_models++].index = chain->model;
        e->chains[e->n_chains++].of = &e->models[m];
    }
    return e->n_chains ? TEC_OK
                       : tec_fail(err, TEC_INVALID, "no node is left in pipeline '%s'", p->name);
}

/* --- checkpoint and description -------------------------------------------------------------- */

/* With random weights of no other size a folder that describes its robot says how large its model
 * is, whether its weights are there or not. */
static enum tec_status open_bare(struct tec_engine *e, struct tec_engine_model *m,
                                 struct tec_checkpoint_source *from, struct tec_error *err)
{
    const char *named = tec_engine_declared(e, m)->weights, *size = e->options.size;
    if (!named || (size && strcmp(size, "full") != 0) ||
        tec_find_path(&from->path, named, e->options.root, &e->arena, NULL) != TEC_OK ||
        tec_path_kind(from->path) != TEC_PATH_CHECKPOINT)
        return TEC_OK;
    from->bare = true;
    TEC_TRY(tec_checkpoint_open_source(&m->checkpoint, from, e->heap, err));
    if (tec_checkpoint_has_robot(m->checkpoint))
        return TEC_OK;
    tec_checkpoint_close(m->checkpoint);
    m->checkpoint = NULL;
    return TEC_OK;
}

/* Open the checkpoint, with its adapter. --weights and --adapter are taken as given; a path in the
 * pipeline is looked up in the current folder, then in the root. */
static enum tec_status open_checkpoint(struct tec_engine *e, struct tec_engine_model *m,
                                       struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    const struct tec_decl_model *d = tec_engine_declared(e, m);
    struct tec_checkpoint_source from = {.path = first(e, m) ? o->weights : NULL,
                                         .adapter = first(e, m) ? o->adapter : NULL,
                                         .hub = o->hub,
                                         .robot = d->embodiment};
    if (o->random)
        return open_bare(e, m, &from, err);
    if (d->adapter && !from.adapter) {
        enum tec_status status = tec_find_path(&from.adapter, d->adapter, o->root, &e->arena, err);
        TEC_TRY(tec_where_context(err, status, &d->where_adapter, "adapter"));
    }
    if (!from.path && d->weights) {
        enum tec_status status = tec_find_path(&from.path, d->weights, o->root, &e->arena, err);
        enum tec_path_kind kind = status == TEC_OK ? tec_path_kind(from.path) : TEC_PATH_CHECKPOINT;
        if (kind != TEC_PATH_CHECKPOINT && kind != TEC_PATH_SAFETENSORS)
            status = tec_path_fail(from.path, kind, err);
        TEC_TRY(tec_where_context(err, status, &d->where_weights, "weights"));
    }
    if (from.path)
        return tec_checkpoint_open_source(&m->checkpoint, &from, e->heap, err);
    if (!first(e, m))
        return tec_fail(err, TEC_NOT_FOUND,
                        "pipeline '%s' names no weights for model '%s': give --set "
                        "models.%s.weights=DIR or --random-weights SEED",
                        o->pipeline->name, d->name, d->name);
    return tec_fail(err, TEC_NOT_FOUND,
                    "pipeline '%s' names no weights: give --weights DIR or --random-weights SEED",
                    o->pipeline->name);
}

/* A list of slots where it is whole, else NULL. */
static json_t *keep_slots(json_t *slots, bool whole)
{
    if (whole)
        return slots;
    json_decref(slots);
    return NULL;
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
    return keep_slots(slots, json_array_size(slots) > 0);
}

/* The slots of a robot's description whose cameras fill a checkpoint's own features, in its order;
 * NULL: they are the model's. */
static json_t *described_slots(const struct tec_decl_robot *robot)
{
    json_t *slots = json_array(), *camera;
    size_t i;
    json_array_foreach(json_object_get(robot->description, "cameras"), i, camera)
    {
        const char *slot = json_string_value(json_object_get(camera, "slot"));
        if (slot && (strncmp(slot, "observation.", 12) == 0 || strncmp(slot, "video.", 6) == 0))
            json_array_append_new(slots, json_string(slot));
    }
    return keep_slots(slots, i > 0 && json_array_size(slots) == i);
}

/* The pictures that a chain's prefill reads, in its order, where all names begin so, as those of a
 * checkpoint's own do; NULL: there are others, or none. */
static json_t *read_slots(const struct tec_pipeline *p, const struct tec_decl_chain *chain,
                          const char *begin)
{
    json_t *slots = json_array();
    const struct tec_decl_node *n = chain->prefill >= 0 ? &p->nodes[chain->prefill] : NULL;
    int pictures = 0;
    for (int i = 0; n && i < n->reads.n; i++) {
        const struct tec_decl_input *in = &p->inputs[n->reads.item[i].index];
        pictures += in->kind == TEC_INPUT_IMAGE;
        if (in->kind == TEC_INPUT_IMAGE && strncmp(in->name, begin, strlen(begin)) == 0)
            json_array_append_new(slots, json_string(in->name));
    }
    return keep_slots(slots, pictures > 0 && json_array_size(slots) == (size_t)pictures);
}

/* Set the pictures of the model with the pipeline's hard nodes, as its robot or its checkpoint
 * names them, or its inputs where neither is here: `slots`, and of LeRobot's names `cameras`.
 * Without them they are as the model's description says. */
static void set_slots(json_t *given, const struct tec_engine *e, const struct tec_engine_model *m)
{
    const struct tec_pipeline *p = e->options.pipeline;
    const struct tec_checkpoint *c = m->checkpoint;
    int i = 0;
    while (i < p->n_chains && (p->chains[i].model != m->index || !p->chains[i].in_frames))
        i++;
    if (i == p->n_chains)
        return;
    int robot = p->chains[i].robot;
    bool described = robot >= 0 && robot < p->n_robots && p->robots[robot].description;
    bool features = c && c->layout == TEC_LAYOUT_LEROBOT;
    json_t *slots = described  ? described_slots(&p->robots[robot])
                    : features ? camera_features(c)
                               : read_slots(p, &p->chains[i], "video.");
    json_t *cameras = described || c ? NULL : read_slots(p, &p->chains[i], "observation.images.");
    if (slots)
        json_object_set_new(given, "slots", slots);
    if (cameras)
        json_object_set_new(given, "cameras", cameras);
}

/* Values that the description cannot know: the chunk that the pipeline declares and the cameras of
 * a checkpoint. */
static json_t *overrides_of(const struct tec_engine *e, const struct tec_engine_model *m)
{
    const struct tec_pipeline *p = e->options.pipeline;
    json_t *given = json_object();
    set_slots(given, e, m);
    if (tec_engine_declared(e, m)->embodiment)
        json_object_set_new(given, "embodiment",
                            json_string(tec_engine_declared(e, m)->embodiment));
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->kind != TEC_DECL_ACTION || n->model.index != m->index || n->out.buffer < 0 ||
            p->resources[n->out.buffer].shape.n != 2)
            continue;
        const int *shape = p->resources[n->out.buffer].shape.item;
        json_object_set_new(given, "horizon", json_integer(shape[0]));
        if (e->options.random && e->options.size && strcmp(e->options.size, "full") != 0)
            json_object_set_new(given, "width", json_integer(shape[1])); /* of a model for tests */
    }
    const struct tec_decl_node *ring;
    for (int i = 0; (ring = tec_pipeline_ring(p, i)); i++) {
        if (ring->model.index != m->index) /* a chunk is one row of tokens */
            continue;
        json_object_set_new(given, "horizon", json_integer(1));
        json_object_set_new(given, "count", json_integer(p->resources[ring->kv.index].stages));
    }
    return given;
}

static enum tec_status open_model(const struct tec_engine *e, struct tec_engine_model *m,
                                  struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    char root[MAX_PATH];
    snprintf(root, sizeof root, "%s/pipelines/models", o->root);
    json_t *given = overrides_of(e, m);
    const struct tec_model_choice choice = {.root = root,
                                            .arch = tec_engine_declared(e, m)->arch,
                                            .size = o->size ? o->size : "full",
                                            .overrides = given,
                                            .checkpoint = m->checkpoint};
    enum tec_status status = tec_model_open(&m->model, &choice, e->heap, err);
    json_decref(given);
    if (status == TEC_NOT_FOUND || status == TEC_IO)
        return tec_where_context(err, status, &tec_engine_declared(e, m)->where_arch, "arch");
    return status;
}

/* A checkpoint whose tokenizer is another model's says which one. */
static enum tec_status fail_tokenizer(const struct tec_checkpoint *c, struct tec_error *err)
{
    if (c->tokenizer_name)
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s has no tokenizer: its %s names that of '%.100s'; copy its "
                        "tokenizer.json into %s, or give it with --tokenizer",
                        c->path,
                        c->processor ? "processor_config.json" : "policy_preprocessor.json",
                        c->tokenizer_name, c->root);
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s has no tokenizer: give --tokenizer tokenizer.model or tokenizer.json",
                    c->path);
}

enum tec_status tec_engine_open_tokenizer(const struct tec_engine *e, struct tec_engine_model *m,
                                          struct tec_error *err)
{
    const char *path = first(e, m) ? e->options.tokenizer : NULL;
    if (m->tokenizer || !tec_model_reads(m->model))
        return TEC_OK;
    if (!path && m->checkpoint)
        path = m->checkpoint->tokenizer;
    if (path)
        return tec_tokenizer_open(&m->tokenizer, path, e->heap, err);
    return m->checkpoint && !e->options.random ? fail_tokenizer(m->checkpoint, err) : TEC_OK;
}

/* Read the lists of texts now: their tokens determine the sizes of the plan. */
static enum tec_status read_lists(struct tec_engine *e, int chain, struct tec_error *err)
{
    const struct tec_pipeline *p = e->options.pipeline;
    struct tec_engine_chain *c = &e->chains[chain];
    if (!tec_choices_any(p, chain))
        return TEC_OK;
    TEC_TRY(tec_engine_open_tokenizer(e, c->of, err));
    TEC_TRY(
        tec_choices_create(&c->choices, p, chain, c->of->model, c->of->tokenizer, &e->arena, err));
    tec_choices_fill(&c->choices, &c->spec);
    return TEC_OK;
}

enum tec_status tec_engine_describe_model(struct tec_engine *e, struct tec_engine_model *m,
                                          struct tec_error *err)
{
    TEC_TRY(open_checkpoint(e, m, err));
    return open_model(e, m, err);
}

enum tec_status tec_engine_describe_chain(struct tec_engine *e, int chain, struct tec_error *err)
{
    struct tec_engine_chain *c = &e->chains[chain];
    TEC_TRY(
        tec_spec_from_pipeline(&c->spec, e->options.pipeline, chain, c->of->model, e->heap, err));
    c->spec.interpret = e->options.interpret;
    c->spec.round = tec_engine_round(e, c->of);
    return read_lists(e, chain, err);
}

/* A draft has a row for each request of the chain that it proposes to, and room for all that these
 * read and make; of the newest text at most two tokens are not read when it proposes. */
static enum tec_status describe_draft(struct tec_engine *e, int at,
                                      const struct tec_decl_node *node, struct tec_error *err)
{
    struct tec_plan_spec *s = &e->chains[at].spec;
    const struct tec_plan_spec *main = &e->chains[node->chain].spec;
    const struct tec_model *small = e->chains[at].of->model,
                           *large = e->chains[node->chain].of->model;
    const struct tec_where *w = &node->draft.where;
    if (small->text.vocab != large->text.vocab)
        return tec_where_fail(
            err, TEC_MALFORMED, w,
            "'%s' has %d tokens in its vocabulary, '%s' has %d: what one proposes "
            "means nothing to the other; choose models of one vocabulary",
            node->draft.model.name, small->text.vocab, node->model.name, large->text.vocab);
    s->request_slots = main->request_slots;
    s->isolated = true;
    s->draws = main->draws;
    s->penalty = small->text.penalty;
    s->prompt_tokens = 0;
    s->new_tokens = main->prompt_tokens + main->new_tokens + main->draft_tokens;
    s->n_batches = main->n_batches;
    memcpy(s->batches, main->batches, sizeof s->batches);
    s->max_k = main->draft_tokens + 1;
    s->unread = 2;
    return TEC_OK;
}

enum tec_status tec_engine_describe_drafts(struct tec_engine *e, struct tec_error *err)
{
    const struct tec_pipeline *p = e->options.pipeline;
    for (int i = p->n_nodes - p->n_drafts; i < p->n_nodes; i++)
        TEC_TRY(describe_draft(e, p->nodes[i].chain, &p->nodes[p->nodes[i].proposes - 1], err));
    return TEC_OK;
}

/* Can the rings of two chains share forwards? Each has its own depth, but both turn alike, and wait
 * for the same text. */
static bool joinable(const struct tec_engine *e, int at, int of)
{
    const struct tec_pipeline *p = e->options.pipeline;
    const struct tec_engine_chain *host = &e->chains[at], *c = &e->chains[of];
    const struct tec_plan_spec *a = &host->spec, *b = &c->spec;
    return tec_pipeline_prompt_waits(p, at) == tec_pipeline_prompt_waits(p, of) &&
           host->of == c->of && !host->joins && a->stages == b->stages && a->shifts == b->shifts &&
           a->gathers == b->gathers && a->apart == b->apart && !a->request_slots && !a->segments &&
           !b->segments && !b->request_slots && (a->rings + b->rings) * a->stages <= TEC_MAX_STAGES;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void join(struct tec_engine_chain *host, struct tec_engine_chain *c)
{
    struct tec_plan_spec *a = &host->spec;
    const struct tec_plan_spec *b = &c->spec;
    c->at = a->rings;
    a->rings += b->rings;
    a->frame_tokens = larger(a->frame_tokens, b->frame_tokens);
    a->ring_tokens = larger(a->ring_tokens, b->ring_tokens);
    a->text_tokens = larger(a->text_tokens, b->text_tokens);
    a->pictures = larger(a->pictures, b->pictures);
    if (a->n_batches)
        a->batches[0] = a->rings * (a->stages - !a->apart);
}

void tec_engine_join_rings(struct tec_engine *e)
{
    for (int i = 1; i < e->n_chains; i++)
        for (int j = 0; j < i && e->chains[i].spec.stages && !e->chains[i].joins; j++)
            if (joinable(e, j, i)) {
                join(&e->chains[j], &e->chains[i]);
                e->chains[i].joins = 1 + j;
            }
}

/* --- weights and plan ------------------------------------------------------------------------ */

struct load_report {
    const struct tec_engine_options *options;
    int64_t before, total;
};

static void weights_progress(void *user, int64_t bytes)
{
    const struct load_report *r = user;
    if (r->options->progress)
        r->options->progress(r->options->user, "weights", r->before + bytes, r->total);
}

/* Does any chain of the model make tokens? */
static bool speaks(const struct tec_engine *e, const struct tec_engine_model *m)
{
    bool language = false;
    for (int i = 0; i < e->n_chains; i++)
        if (e->chains[i].of == m)
            language |= e->chains[i].spec.request_slots > 0 || e->chains[i].spec.stages > 0;
    return language;
}

/* The most rings of the model that share forwards. */
static int rings_of(const struct tec_engine *e, const struct tec_engine_model *m)
{
    int most = 0;
    for (int i = 0; i < e->n_chains; i++)
        if (e->chains[i].of == m)
            most = larger(most, e->chains[i].spec.rings);
    return most;
}

static enum tec_status load_weights(struct tec_engine *e, struct tec_engine_model *m,
                                    struct tec_weight_source source, int64_t before, int64_t total,
                                    struct tec_error *err)
{
    struct load_report report = {&e->options, before, total};
    const struct tec_weights_options w = {.model = m->model,
                                          .source = source,
                                          .device = m->device,
                                          .bf16 = tec_engine_bf16(e, m),
                                          .quantize = tec_engine_quantize(e, m),
                                          .quantize_head = tec_engine_quantize_head(e, m),
                                          .language = speaks(e, m),
                                          .prompts = rings_of(e, m),
                                          .cache = e->options.weight_cache,
                                          .progress = source.dry ? NULL : weights_progress,
                                          .user = &report};
    return tec_weights_load(&m->weights, &w, e->heap, err);
}

enum tec_status tec_engine_plan_chain(struct tec_engine *e, struct tec_engine_chain *c, bool dry,
                                      int64_t before, int64_t total, struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    if (c->joins) {
        c->plan = e->chains[c->joins - 1].plan;
        return TEC_OK;
    }
    const struct tec_weight_source source = {
        .checkpoint = o->random ? NULL : c->of->checkpoint, .seed = dry ? 0 : o->seed, .dry = dry};
    if (!c->of->weights)
        TEC_TRY(load_weights(e, c->of, source, before, total, err));
    if (!dry && o->progress)
        o->progress(o->user, "captures", 0, 1);
    const struct tec_plan_inputs in = {.spec = &c->spec,
                                       .model = c->of->model,
                                       .weights = c->of->weights,
                                       .source = source,
                                       .device = c->of->device,
                                       .picture_rows = c->of->picture_rows};
    TEC_TRY(tec_plan_create(&c->plan, &in, e->heap, err));
    if (c->plan->owns_rows)
        c->of->picture_rows = c->plan->picture_rows;
    return TEC_OK;
}

void tec_engine_drop_plans(struct tec_engine *e)
{
    for (int i = 0; i < e->n_chains; i++) {
        if (!e->chains[i].joins)
            tec_plan_destroy(e->chains[i].plan);
        e->chains[i].plan = NULL;
    }
    for (int i = 0; i < e->n_models; i++) {
        tec_weights_close(e->models[i].weights);
        e->models[i].weights = NULL;
        e->models[i].picture_rows = NULL;
    }
}

void tec_engine_close_model(struct tec_engine_model *m)
{
    tec_tokenizer_close(m->tokenizer);
    tec_model_close(m->model);
    tec_checkpoint_close(m->checkpoint);
}

void tec_engine_show_first(struct tec_engine *e)
{
    const struct tec_engine_model *m = &e->models[0];
    e->checkpoint = m->checkpoint;
    e->tokenizer = m->tokenizer;
    e->model = m->model;
    e->weights = m->weights;
    e->plan = e->chains[0].plan;
}
