/* measure.c - computes exactly how many bytes a pipeline would take, without allocating them. */
#include "tools/measure/measure.h"

#include "base/byte_text.h"
#include "base/store/find.h"
#include "base/store/kind.h"

#include "tools/cli/open_engine.h"

#include <string.h>

static enum tec_status find_checkpoint(const struct tec_invocation *call, const char *weights,
                                       struct tec_error *err)
{
    const char *path;
    TEC_TRY(tec_find_path(&path, weights, call->root, call->arena, err));
    enum tec_path_kind kind = tec_path_kind(path);
    bool is = kind == TEC_PATH_CHECKPOINT || kind == TEC_PATH_SAFETENSORS;
    return is ? TEC_OK : tec_path_fail(path, kind, err);
}

static bool is_here(const struct tec_invocation *call, const char *weights)
{
    return weights && find_checkpoint(call, weights, NULL) == TEC_OK;
}

enum tec_status tec_measure_named(const struct tec_where **where, const struct tec_invocation *call,
                                  const struct tec_pipeline *p, struct tec_error *err)
{
    for (int i = 0; i < p->n_models; i++) {
        const struct tec_decl_model *m = &p->models[i];
        bool set =
            m->weights && m->where_weights.file && strcmp(m->where_weights.file, "--set") == 0;
        bool used = tec_pipeline_runs(p, i) && !call->shared.random_weights.given &&
                    !(i == tec_pipeline_main(p) && call->shared.weights);
        *where = &m->where_weights;
        if (set && used)
            TEC_TRY(find_checkpoint(call, m->weights, err));
    }
    return TEC_OK;
}

enum tec_measured_by tec_measured_by(const struct tec_invocation *call,
                                     const struct tec_pipeline *pipeline)
{
    int main = pipeline->n_models > 0 ? tec_pipeline_main(pipeline) : -1;
    bool here = pipeline->n_models > 0;
    for (int i = 0; i < pipeline->n_models; i++) /* counted only if all of them are here */
        if (tec_pipeline_runs(pipeline, i) && !(i == main && call->shared.weights))
            here = here && is_here(call, pipeline->models[i].weights);
    return call->shared.random_weights.given ? TEC_MEASURED_SIZE
           : here                            ? TEC_MEASURED_CHECKPOINT
                                             : TEC_MEASURED_FULL;
}

static enum tec_status options_of(struct tec_engine_options *options, enum tec_measured_by *by,
                                  struct tec_invocation *call, const struct tec_pipeline *pipeline,
                                  struct tec_error *err)
{
    const struct tec_shared *s = &call->shared;
    const struct tec_where *where = NULL;
    enum tec_status status = tec_opened_status(tec_measure_named(&where, call, pipeline, err));
    if (status != TEC_OK)
        return tec_where_context(err, status, where, "weights");
    *by = tec_measured_by(call, pipeline);
    *options = (struct tec_engine_options){.pipeline = pipeline,
                                           .root = call->root,
                                           .weights = s->weights,
                                           .adapter = s->adapter,
                                           .random = *by != TEC_MEASURED_CHECKPOINT,
                                           .size = tec_shared_size(s),
                                           .tokenizer = s->tokenizer,
                                           .hub = call->hub};
    if (pipeline->n_models == 0)
        return tec_fail(err, TEC_UNSUPPORTED, "it has no model");
    return tec_cli_device_choice(call, &options->device, err);
}

enum tec_status tec_measure(struct tec_measured *out, enum tec_measured_by *by,
                            struct tec_invocation *call, const struct tec_pipeline *pipeline,
                            struct tec_diagnostics *found, struct tec_error *err)
{
    struct tec_engine_options options;
    TEC_TRY(options_of(&options, by, call, pipeline, err));
    options.found = found;
    options.absent = *by == TEC_MEASURED_FULL;
    return tec_engine_measure(out, &options, call->heap, call->arena, err);
}

enum tec_status tec_measure_plan(struct tec_engine **out, enum tec_measured_by *by,
                                 struct tec_invocation *call, const struct tec_pipeline *pipeline,
                                 bool branches, struct tec_error *err)
{
    struct tec_engine_options options;
    TEC_TRY(options_of(&options, by, call, pipeline, err));
    options.branches = branches;
    return tec_engine_plan(out, &options, call->heap, err);
}

void tec_measure_steps(int *steps, struct tec_invocation *call, const struct tec_pipeline *pipeline)
{
    struct tec_engine *engine = NULL;
    enum tec_measured_by by;
    struct tec_error unsaid;
    bool any = false;
    for (int i = 0; i < pipeline->n_nodes; i++) {
        const struct tec_decl_node *n = &pipeline->nodes[i];
        steps[i] = n->kind == TEC_DECL_ACTION ? n->steps : 0;
        any |= n->kind == TEC_DECL_ACTION && !n->culled && !n->steps;
    }
    if (!any || tec_measure_plan(&engine, &by, call, pipeline, false, &unsaid) != TEC_OK)
        return;
    for (int i = 0; i < pipeline->n_nodes; i++) {
        const struct tec_decl_node *n = &pipeline->nodes[i];
        if (n->kind == TEC_DECL_ACTION && !n->culled && !n->steps && n->chain >= 0)
            steps[i] = engine->chains[n->chain].plan->model->flow.steps;
    }
    tec_engine_close(engine);
}

const char *tec_measure_text(const struct tec_byte_plan *bytes, struct tec_arena *arena)
{
    const struct {
        const char *name;
        int64_t bytes;
    } parts[] = {
        {"weights", bytes->weights},         {"KV", bytes->kv},
        {"activations", bytes->activations}, {"tables", bytes->tables},
        {"constants", bytes->constants},     {"frames", bytes->frames},
        {"workspace", bytes->workspace},
    };
    char text[24];
    const char *all = tec_arena_printf(arena, "%s", tec_byte_text(text, bytes->total));
    for (size_t i = 0; all && i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].bytes > 0)
            all = tec_arena_printf(arena, "%s%s %s %s", all, i ? "," : ":", parts[i].name,
                                   tec_byte_text(text, parts[i].bytes));
    return all;
}

const char *tec_measure_host_text(const struct tec_measured *m, const struct tec_pipeline *pipeline,
                                  struct tec_arena *arena)
{
    char host[24], staging[24], kept[24], captures[24], budget[24];
    if (!m->memory.staging)
        return "";
    return tec_arena_printf(
        arena, "; host plan %s: KV on its way %s, KV kept at most %s, captures %s%s%s",
        tec_byte_text(host, m->host), tec_byte_text(staging, m->memory.staging),
        tec_byte_text(kept, m->memory.kept), tec_byte_text(captures, m->bytes.captures),
        pipeline->memory.host ? "; budget " : "",
        pipeline->memory.host ? tec_byte_text(budget, pipeline->memory.host) : "");
}
