/* load.c - the steps of a load, in order. */
#include "graph/load/loader.h"

#include <string.h>

/* The arena holds the pipeline itself too: the block is the handle. */
struct owned {
    struct tec_pipeline pipeline;
    struct tec_arena arena;
    struct tec_heap *heap;
};

static const char *kind_of_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".safetensors") == 0)
        return "a checkpoint file";
    if (dot && (strcmp(dot, ".wrec") == 0 || strcmp(dot, ".rec") == 0))
        return "a recording";
    if (dot && strcmp(dot, ".costs") == 0)
        return "a cost file";
    return NULL;
}

static struct tec_decl_value *read_file(struct tec_loader *ld, enum tec_status *status,
                                        struct tec_error *err)
{
    *status = tec_loader_open(ld, err);
    if (*status != TEC_OK)
        return NULL;
    if (!ld->sources[0].json)
        return tec_load_script(ld, status, err);
    struct tec_decl_value *v = tec_load_json(ld, 0);
    if (!v)
        *status = TEC_MALFORMED;
    return v;
}

static enum tec_status load(struct tec_loader *ld, struct tec_error *err)
{
    enum tec_status status = TEC_OK;
    const char *other = kind_of_file(ld->options->path);
    if (other)
        return tec_fail(err, TEC_MALFORMED, "%s: this is %s, not a pipeline file",
                        ld->options->path, other);
    struct tec_decl_value *root = read_file(ld, &status, err);
    if (status != TEC_OK && ld->d->n_errors == 0)
        return status;
    if (status == TEC_NO_MEMORY)
        return status;
    if (root)
        root = tec_overlay_set(ld, root);
    if (root) {
        tec_build(ld, root);
        if (ld->root) {
            tec_resolve(ld);
            tec_check_graph(ld);
            tec_check_drafts(ld);
            if (tec_only_refused(ld->d) && ld->pipeline->n_models > 0) {
                tec_add_drafts(ld);
                tec_divide_chains(ld);
            }
            tec_check_robots(ld);
            tec_check_streams(ld);
            tec_check_spawns(ld);
            tec_check_memory(ld);
            tec_check_text_keys(ld);
            tec_check_sizes(ld);
            if (tec_only_refused(ld->d) && ld->pipeline->n_chains > 0) {
                tec_check_superseded(ld);
                tec_refuse(ld);
            }
        }
    }
    tec_diagnostics_sort(ld->d);
    if (ld->out_of_memory || ld->d->out_of_memory)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for the pipeline", ld->options->path);
    if (ld->options->any && ld->root && tec_only_refused(ld->d))
        return TEC_OK;
    return ld->d->n_errors ? tec_diagnostics_first(ld->d, ld->pipeline->file, err) : TEC_OK;
}

enum tec_status tec_pipeline_load(struct tec_pipeline **out, const struct tec_load_options *options,
                                  struct tec_heap *heap, struct tec_diagnostics *d,
                                  struct tec_error *err)
{
    if (!options->path)
        return tec_fail(err, TEC_INVALID, "no pipeline file is named");
    struct owned *owned = tec_heap_get(heap, sizeof *owned);
    struct tec_loader *ld = tec_heap_get(heap, sizeof *ld);
    if (!owned || !ld) {
        tec_heap_put(heap, owned);
        tec_heap_put(heap, ld);
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a pipeline", options->path);
    }
    struct tec_arena scratch;
    tec_arena_init(&owned->arena, heap);
    tec_arena_init(&scratch, heap);
    owned->heap = heap;
    *ld = (struct tec_loader){.options = options,
                              .heap = heap,
                              .arena = &owned->arena,
                              .scratch = &scratch,
                              .d = d,
                              .pipeline = &owned->pipeline};
    owned->pipeline.path = tec_arena_strdup(&owned->arena, options->path);
    owned->pipeline.file =
        options->shown ? tec_arena_strdup(&owned->arena, options->shown) : owned->pipeline.path;
    enum tec_status status = load(ld, err);
    if (status == TEC_OK)
        *out = &owned->pipeline;
    else
        tec_pipeline_free(&owned->pipeline);
    tec_arena_finish(&scratch);
    tec_heap_put(heap, ld);
    return status;
}

void tec_pipeline_free(struct tec_pipeline *pipeline)
{
    if (!pipeline)
        return;
    struct owned *owned = (struct owned *)(void *)pipeline;
    union {
        const json_t *in;
        json_t *out;
    } params = {pipeline->policy.params};
    for (int i = 0; i < pipeline->n_robots; i++) {
        params.in = pipeline->robots[i].description;
        json_decref(params.out);
    }
    params.in = pipeline->policy.params;
    json_decref(params.out);
    tec_arena_finish(&owned->arena);
    tec_heap_put(owned->heap, owned);
}
