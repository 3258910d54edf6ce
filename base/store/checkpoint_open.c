/* checkpoint_open.c - opens a checkpoint folder or file: its layout, configuration, tensors and
 * tokenizer, and the adapter that changes the tensors; reads these. */
#include "base/store/checkpoint_own.h"

#include "base/store/tensors.h"

#include "base/store/adapter.h"
#include "base/store/assets.h"
#include "base/store/file.h"
#include "base/store/hub.h"
#include "base/store/kind.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Recognise the layout by what each program writes: LeRobot's configurations have "type" and
 * features, those of the openpi conversion have the action's sizes and little else, Hugging Face's
 * have model_type. */
static enum tec_status recognise(struct tec_checkpoint *c, struct tec_error *err)
{
    const json_t *config = c->config;
    if (!config)
        c->layout = TEC_LAYOUT_FILE;
    else if (json_is_string(json_object_get(config, "type")) &&
             (c->preprocessor || json_object_get(config, "input_features")))
        c->layout = TEC_LAYOUT_LEROBOT;
    else if (json_object_get(config, "action_dim") && json_object_get(config, "action_horizon") &&
             !json_object_get(config, "model_type"))
        c->layout = TEC_LAYOUT_OPENPI;
    else if (json_object_get(config, "model_type") || json_object_get(config, "architectures"))
        c->layout = TEC_LAYOUT_HF;
    else
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s/config.json: of no known layout: it has neither action_dim and "
                        "action_horizon (openpi), nor type and input_features (LeRobot), nor "
                        "model_type (Hugging Face)",
                        c->root);
    return TEC_OK;
}

/* What LeRobot's preprocessor says of its tokenizer: the folder that was saved with the checkpoint,
 * and the name, which in a step that takes pictures, too, is the model's. */
static void read_tokenizer_step(struct tec_checkpoint *c, const char **saved)
{
    const json_t *steps = json_object_get(c->preprocessor, "steps");
    *saved = NULL;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const char *kind = json_string_value(json_object_get(step, "registry_name"));
        const json_t *config = json_object_get(step, "config");
        const char *model = json_string_value(json_object_get(config, "model_name"));
        if (!kind || strcmp(kind, "tokenizer_processor") != 0) {
            c->tokenizer_name = model ? model : c->tokenizer_name;
            continue;
        }
        const json_t *artifacts = json_object_get(step, "artifacts");
        *saved = json_string_value(json_object_get(artifacts, "tokenizer_name"));
        c->tokenizer_name = json_string_value(json_object_get(config, "tokenizer_name"));
        return;
    }
}

/* The folder beside the checkpoint with the last part of the name, "../model" of "owner/model":
 * what the program that trained had downloaded lies elsewhere. NULL: the name has none. */
static const char *folder_beside(struct tec_checkpoint *c, bool *failed)
{
    const char *name = c->tokenizer_name, *slash = name ? strrchr(name, '/') : NULL;
    const char *last = slash ? slash + 1 : name;
    if (!last || !*last || last[0] == '.')
        return NULL;
    const char *folder = tec_arena_printf(&c->arena, "../%s", last);
    *failed |= !folder;
    return folder;
}

/* Finds tokenizer.model or tokenizer.json, of the model that is named first, and what its library
 * is told about it. */
static enum tec_status find_tokenizer(struct tec_checkpoint *c, struct tec_error *err)
{
    static const char *const names[] = {"tokenizer.model", "tokenizer.json", "vocab.json"};
    const char *saved, *config = NULL;
    bool failed = false;
    read_tokenizer_step(c, &saved);
    const char *named = c->tokenizer_name, *beside = folder_beside(c, &failed);
    const char *below = named && tec_checkpoint_is_below(named) ? named : "";
    const char *inside = beside ? beside + strlen("../") : NULL;
    const char *folders[] = {saved && tec_checkpoint_is_below(saved) ? saved : "",
                             below,
                             "",
                             "tokenizer",
                             inside,
                             beside};
    for (size_t f = 0; f < sizeof folders / sizeof folders[0] && !c->tokenizer; f++)
        for (int i = 0; folders[f] && i < 2 + (folders[f] == beside) && !c->tokenizer; i++) {
            c->tokenizer = tec_checkpoint_file(c, folders[f], names[i], &failed);
            config = c->tokenizer
                         ? tec_checkpoint_file(c, folders[f], "tokenizer_config.json", &failed)
                         : NULL;
        }
    if (failed)
        return tec_checkpoint_no_memory(c, err);
    if (!c->tokenizer && named && c->hub) {
        TEC_TRY(tec_hub_find(&c->tokenizer, c->hub, named, names[1], &c->arena, err));
        if (c->tokenizer)
            TEC_TRY(tec_hub_find(&config, c->hub, named, "tokenizer_config.json", &c->arena, err));
    }
    return config ? tec_checkpoint_json_load_reals(&c->tokenization, config, c->heap, err) : TEC_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Load what only Hugging Face's folders have: settings for pictures, and statistics by dataset. The
 * dataset_statistics.json of a fine-tuned checkpoint takes precedence over the statistics in its
 * configuration, which are still those of the base model. */
static enum tec_status open_hf(struct tec_checkpoint *c, struct tec_error *err)
{
    const char *key;
    json_t *value;
    TEC_TRY(tec_checkpoint_load_if(c, "generation_config.json", &c->generation, err));
    TEC_TRY(tec_checkpoint_load_if(c, "preprocessor_config.json", &c->pictures, err));
    TEC_TRY(tec_checkpoint_load_if(c, "dataset_statistics.json", &c->statistics, err));
    if (!c->processor)
        TEC_TRY(tec_checkpoint_load_if(c, "experiment_cfg/metadata.json", &c->robots, err));
    json_t *inside = json_object_get(c->config, "norm_stats");
    c->statistics_in =
        tec_arena_printf(&c->arena, "%s/%s", c->root,
                         c->statistics ? "dataset_statistics.json" : "config.json: norm_stats");
    if (!c->statistics && inside && !json_is_null(inside))
        c->statistics = json_incref(inside);
    if (!c->statistics_in)
        return tec_checkpoint_no_memory(c, err);
    if (!c->statistics)
        return TEC_OK;
    if (!json_is_object(c->statistics))
        return tec_fail(err, TEC_MALFORMED, "%s: is not an object of datasets", c->statistics_in);
    const char **keys = TEC_NEW(&c->arena, json_object_size(c->statistics) + 1, const char *);
    if (!keys)
        return tec_checkpoint_no_memory(c, err);
    c->n_assets = 0;
    json_object_foreach(c->statistics, key, value) keys[c->n_assets++] = key;
    qsort(keys, c->n_assets, sizeof *keys, by_name);
    c->assets = keys;
    return TEC_OK;
}

/* The folder of config.json: LeRobot's training output has it one folder down. */
static enum tec_status root_of(struct tec_checkpoint *c, const char *path, const char **root,
                               struct tec_error *err)
{
    struct stat st;
    const char *below = tec_arena_printf(&c->arena, "%s/pretrained_model", path);
    const char *config = tec_arena_printf(&c->arena, "%s/config.json", path);
    *root = tec_arena_strdup(&c->arena, path);
    if (!below || !config || !*root)
        return tec_checkpoint_no_memory(c, err);
    if (access(config, F_OK) != 0 && stat(below, &st) == 0 && S_ISDIR(st.st_mode))
        *root = below;
    return TEC_OK;
}

/* The base of an adapter's folder: what its configuration names, as it stands or by its last word
 * in the folder or beside it, or in the hub's cache. */
static enum tec_status base_of(struct tec_checkpoint *c, const char *adapter, const char *name,
                               const char **base, struct tec_error *err)
{
    const char *slash = name ? strrchr(name, '/') : NULL, *last = slash ? slash + 1 : name;
    const char *candidates[3] = {name}, *config = NULL;
    *base = NULL;
    if (!name || !*name)
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s: this is an adapter whose adapter_config.json names no base "
                        "(base_model_name_or_path): give the base with --weights and this folder "
                        "with --adapter",
                        adapter);
    for (int i = 0; i < 2 && tec_checkpoint_is_below(last); i++) {
        candidates[1 + i] = tec_arena_printf(&c->arena, "%s/%s%s", adapter, i ? "../" : "", last);
        if (!candidates[1 + i])
            return tec_checkpoint_no_memory(c, err);
    }
    for (int i = 0; i < 3 && !*base; i++)
        if (candidates[i] && tec_path_kind(candidates[i]) == TEC_PATH_CHECKPOINT)
            *base = candidates[i];
    if (!*base && c->hub)
        TEC_TRY(tec_hub_find(&config, c->hub, name, "config.json", &c->arena, err));
    if (config) {
        *base = tec_arena_printf(&c->arena, "%.*s", (int)(strrchr(config, '/') - config), config);
        return *base ? TEC_OK : tec_checkpoint_no_memory(c, err);
    }
    if (*base)
        return TEC_OK;
    return tec_fail(err, TEC_NOT_FOUND,
                    "%s: this is an adapter of '%.200s', which is no folder here, not beside it%s: "
                    "give the base with --weights and this folder with --adapter",
                    adapter, name, c->hub ? ", and not in the cache of downloads" : "");
}

/* The folders of configuration and tensors; *adapter is that of a folder to merge, or NULL. */
static enum tec_status find_folders(struct tec_checkpoint *c, const char *given,
                                    const char **adapter, struct tec_error *err)
{
    bool failed = false;
    const char *named;
    json_t *config = NULL;
    *adapter = NULL;
    TEC_TRY(root_of(c, c->path, &c->base, err));
    if (given)
        TEC_TRY(root_of(c, given, adapter, err));
    if (tec_path_is_adapter(c->base) && given)
        return tec_fail(err, TEC_INVALID, "%s: this is an adapter itself, and so is %s", c->path,
                        given);
    if (tec_path_is_adapter(c->base) && !c->bare) {
        *adapter = c->base;
        const char *file = tec_arena_printf(&c->arena, "%s/adapter_config.json", c->base);
        if (!file)
            return tec_checkpoint_no_memory(c, err);
        TEC_TRY(tec_checkpoint_json_load(&config, file, c->heap, err));
        named = json_string_value(json_object_get(config, "base_model_name_or_path"));
        enum tec_status status = base_of(c, *adapter, named, &c->base, err);
        if (status == TEC_OK)
            status = root_of(c, c->base, &c->base, err);
        json_decref(config); /* until here: a base named by its path is text of the configuration */
        TEC_TRY(status);
        if (tec_path_is_adapter(c->base))
            return tec_fail(err, TEC_INVALID, "%s: its base %s is an adapter, too", c->path,
                            c->base);
    }
    bool own = *adapter && tec_checkpoint_file_in(c, *adapter, "", "config.json", &failed);
    c->root = own ? *adapter : c->base;
    return failed ? tec_checkpoint_no_memory(c, err) : TEC_OK;
}

static enum tec_status open_directory(struct tec_checkpoint *c, struct tec_error *err)
{
    const char *assets = tec_arena_printf(&c->arena, "%s/assets", c->root);
    if (!assets)
        return tec_checkpoint_no_memory(c, err);
    TEC_TRY(tec_checkpoint_load_if(c, "config.json", &c->config, err));
    TEC_TRY(tec_checkpoint_load_if(c, "policy_preprocessor.json", &c->preprocessor, err));
    TEC_TRY(tec_checkpoint_load_if(c, "policy_postprocessor.json", &c->postprocessor, err));
    enum tec_status status = tec_tensors_open(&c->tensors, c->base, c->heap, err);
    if (!c->bare || status == TEC_NO_MEMORY) /* values that nobody reads may be missing or cut */
        TEC_TRY(status);
    TEC_TRY(tec_checkpoint_read_robots(c, err));
    TEC_TRY(find_tokenizer(c, err));
    return tec_assets_list(&c->assets, &c->n_assets, assets, &c->arena, err);
}

static enum tec_status open_adapter(struct tec_checkpoint *c, const char *folder,
                                    struct tec_error *err)
{
    char both[2 * TEC_HASH_TEXT];
    TEC_TRY(tec_adapter_open(&c->adapter, folder, c, err));
    snprintf(both, sizeof both, "%s%s", c->hash, tec_adapter_facts(c->adapter).hash);
    tec_tensors_hash_text(XXH3_128bits(both, strlen(both)), c->hash);
    return TEC_OK;
}

static enum tec_status open_into(struct tec_checkpoint *c,
                                 const struct tec_checkpoint_source *source, struct tec_error *err)
{
    enum tec_path_kind kind = tec_path_kind(source->path);
    const char *adapter = source->adapter;
    c->path = tec_arena_strdup(&c->arena, source->path);
    c->hub = source->hub ? tec_arena_strdup(&c->arena, source->hub) : NULL;
    if (!c->path || (source->hub && !c->hub))
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its name", source->path);
    c->root = c->base = c->path;
    c->bare = source->bare;
    if (kind == TEC_PATH_CHECKPOINT) {
        TEC_TRY(find_folders(c, source->adapter, &adapter, err));
        TEC_TRY(open_directory(c, err));
    } else if (kind == TEC_PATH_SAFETENSORS) {
        TEC_TRY(tec_tensors_open(&c->tensors, c->path, c->heap, err));
    } else {
        return tec_path_fail(c->path, kind, err);
    }
    TEC_TRY(recognise(c, err));
    if (c->layout == TEC_LAYOUT_HF)
        TEC_TRY(open_hf(c, err));
    if (source->robot)
        TEC_TRY(tec_checkpoint_choose(c, source->robot, err));
    TEC_TRY(tec_checkpoint_find_prefix(c, err));
    if (c->tensors)
        tec_tensors_hash(c->tensors, c->hash);
    return adapter ? open_adapter(c, adapter, err) : TEC_OK;
}

enum tec_status tec_checkpoint_open_source(struct tec_checkpoint **out,
                                           const struct tec_checkpoint_source *source,
                                           struct tec_heap *heap, struct tec_error *err)
{
    struct tec_checkpoint *c = tec_heap_get(heap, sizeof *c);
    *out = NULL;
    if (!c)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its description", source->path);
    c->heap = heap;
    tec_arena_init(&c->arena, heap);
    enum tec_status status = open_into(c, source, err);
    if (status == TEC_OK)
        *out = c;
    else
        tec_checkpoint_close(c);
    return status;
}

enum tec_status tec_checkpoint_open(struct tec_checkpoint **out, const char *path,
                                    struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_checkpoint_source source = {.path = path};
    return tec_checkpoint_open_source(out, &source, heap, err);
}

enum tec_status tec_checkpoint_read_f32(const struct tec_checkpoint *c,
                                        const struct tec_stored *stored, uint64_t first, float *dst,
                                        size_t n, struct tec_error *err)
{
    TEC_TRY(tec_tensors_read_f32(c->tensors, stored, first, dst, n, err));
    return c->adapter ? tec_adapter_apply(c->adapter, stored, first, dst, n, err) : TEC_OK;
}

enum tec_status tec_checkpoint_content(const struct tec_checkpoint *c, char text[TEC_HASH_TEXT],
                                       struct tec_error *err)
{
    uint64_t of[4] = {0};
    if (c->tensors)
        TEC_TRY(tec_tensors_content(c->tensors, TEC_CONTENT_WHOLE, of, c->heap, err));
    if (c->adapter)
        TEC_TRY(tec_adapter_content(c->adapter, TEC_CONTENT_WHOLE, of + 2, err));
    tec_tensors_hash_text(XXH3_128bits(of, sizeof of), text);
    return TEC_OK;
}

void tec_checkpoint_close(struct tec_checkpoint *c)
{
    if (!c)
        return;
    tec_adapter_close(c->adapter);
    tec_tensors_close(c->tensors);
    json_decref(c->config);
    json_decref(c->generation);
    json_decref(c->tokenization);
    json_decref(c->pictures);
    json_decref(c->statistics);
    json_decref(c->robots);
    json_decref(c->processor);
    json_decref(c->robot_statistics);
    json_decref(c->robot_numbers);
    json_decref(c->preprocessor);
    json_decref(c->postprocessor);
    tec_arena_finish(&c->arena);
    tec_heap_put(c->heap, c);
}
