/* checkpoint_norm.c - finds a checkpoint's normalisation statistics and picture settings, for each
 * layout. */
#include "base/store/checkpoint.h"

#include "base/store/file.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Choose the named asset, or the only one; the error message lists the assets there are. */
static enum tec_status choose_asset(const struct tec_checkpoint *c, const char **asset,
                                    struct tec_error *err)
{
    char ids[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < c->n_assets; i++) {
        if (*asset ? strcmp(*asset, c->assets[i]) == 0 : c->n_assets == 1) {
            *asset = c->assets[i];
            return TEC_OK;
        }
        if (used + 64 < sizeof ids)
            used += (size_t)snprintf(ids + used, sizeof ids - used, "%s%.50s", used ? ", " : "",
                                     c->assets[i]);
    }
    if (!c->n_assets)
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s/assets: no <asset id>/norm_stats.json; copy the folder assets from the "
                        "original checkpoint",
                        c->root);
    if (!*asset)
        return tec_fail(err, TEC_INVALID, "%s/assets: choose one of the asset ids %s", c->root,
                        ids);
    return tec_fail(err, TEC_NOT_FOUND, "%s/assets: no asset id '%.80s'; there are %s", c->root,
                    *asset, ids);
}

enum tec_status tec_checkpoint_norm_openpi(const struct tec_checkpoint *c, struct tec_norm *norm,
                                           const char *asset, const char *key,
                                           enum tec_norm_mode mode, struct tec_arena *arena,
                                           struct tec_error *err)
{
    TEC_TRY(choose_asset(c, &asset, err));
    const char *path = tec_arena_printf(arena, "%s/assets/%s/norm_stats.json", c->root, asset);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a path", c->root);
    return tec_norm_load_openpi(norm, path, key, mode, arena, err);
}

static const json_t *find_step(const json_t *processor, const char *kind)
{
    const json_t *steps = json_object_get(processor, "steps");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const char *name = json_string_value(json_object_get(step, "registry_name"));
        if (name && strcmp(name, kind) == 0)
            return step;
    }
    return NULL;
}

/* Open the statistics file that a processor step names, which must lie in the checkpoint's own
 * folder. *state is NULL if the step names none. */
static enum tec_status open_state(const struct tec_checkpoint *c, const json_t *step,
                                  struct tec_tensors **state, struct tec_arena *arena,
                                  struct tec_error *err)
{
    const json_t *file = json_object_get(step, "state_file");
    const char *name = json_string_value(file);
    *state = NULL;
    if (!file || json_is_null(file))
        return TEC_OK;
    if (!name || !*name || strpbrk(name, "/\\") || name[0] == '.')
        return tec_fail(err, TEC_MALFORMED, "%s: state_file '%.80s' is not a plain file name",
                        c->root, name ? name : "?");
    const char *path = tec_arena_printf(arena, "%s/%s", c->root, name);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a path", c->root);
    if (c->bare && access(path, F_OK) != 0)
        return TEC_OK;
    return tec_tensors_open(state, path, c->heap, err);
}

enum tec_status tec_checkpoint_norm_lerobot(const struct tec_checkpoint *c, struct tec_norm *norm,
                                            const char *feature, struct tec_arena *arena,
                                            struct tec_error *err)
{
    bool action = strcmp(feature, "action") == 0;
    const char *kind = action ? "unnormalizer_processor" : "normalizer_processor";
    const json_t *step = find_step(action ? c->postprocessor : c->preprocessor, kind);
    struct tec_tensors *state = NULL;
    if (!step)
        return tec_fail(err, TEC_NOT_FOUND, "%s/policy_%s.json: there is no step %s", c->root,
                        action ? "postprocessor" : "preprocessor", kind);
    enum tec_status status = open_state(c, step, &state, arena, err);
    if (status == TEC_OK)
        status = tec_norm_load_lerobot(norm, step, state, feature, arena, err);
    tec_tensors_close(state);
    return tec_context(err, status, "%s/policy_%s.json", c->root,
                       action ? "postprocessor" : "preprocessor");
}

/* Steps whose statistics tec_checkpoint_norm_lerobot reads. */
static bool is_normalizer(const char *step)
{
    return strcmp(step, "normalizer_processor") == 0 || strcmp(step, "unnormalizer_processor") == 0;
}

/* Tensors of numbers as lists by name; others, and longer ones, are not statistics of a vector. */
static enum tec_status list_tensors(json_t *into, const struct tec_tensors *state,
                                    struct tec_error *err)
{
    enum { MOST = 1024 };
    float values[MOST];
    for (size_t i = 0; i < tec_tensors_count(state); i++) {
        const struct tec_stored *t = tec_tensors_at(state, i);
        int64_t n = tec_stored_count(t);
        if ((t->dtype != TEC_F32 && t->dtype != TEC_F64) || n < 1 || n > MOST)
            continue;
        TEC_TRY(tec_tensors_read_f32(state, t, 0, values, (size_t)n, err));
        json_t *list = json_array();
        bool bad = !list;
        for (int64_t k = 0; k < n && !bad; k++)
            bad = !isfinite(values[k]) ||
                  json_array_append_new(list, json_real((double)values[k])) != 0;
        if (bad || json_object_set(into, t->name, list) != 0) {
            json_decref(list);
            return tec_fail(err, TEC_MALFORMED, "tensor '%.80s' must be %d finite numbers", t->name,
                            (int)n);
        }
        json_decref(list);
    }
    return TEC_OK;
}

static enum tec_status add_step(json_t *into, const struct tec_checkpoint *c, const json_t *step,
                                struct tec_arena *arena, struct tec_error *err)
{
    const char *name = json_string_value(json_object_get(step, "registry_name"));
    struct tec_tensors *state = NULL;
    if (!name || is_normalizer(name))
        return TEC_OK;
    TEC_TRY(open_state(c, step, &state, arena, err));
    if (!state)
        return TEC_OK;
    json_t *tensors = json_object();
    enum tec_status status = list_tensors(tensors, state, err);
    tec_tensors_close(state);
    if (status == TEC_OK && json_object_set(into, name, tensors) != 0)
        status = tec_fail(err, TEC_NO_MEMORY, "step '%.80s': no memory for its statistics", name);
    json_decref(tensors);
    return tec_context(err, status, "%s", c->root);
}

enum tec_status tec_checkpoint_steps(const struct tec_checkpoint *c, json_t **out,
                                     struct tec_arena *arena, struct tec_error *err)
{
    const json_t *const processors[] = {c->preprocessor, c->postprocessor};
    enum tec_status status = TEC_OK;
    const json_t *step;
    size_t i;
    *out = json_object();
    for (int p = 0; p < 2; p++)
        json_array_foreach(json_object_get(processors[p], "steps"), i, step) if (status == TEC_OK)
            status = add_step(*out, c, step, arena, err);
    if (status != TEC_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* Choose the named dataset, or the only one; the error message lists the datasets there are. */
static enum tec_status choose_dataset(const struct tec_checkpoint *c, const char **key,
                                      struct tec_error *err)
{
    char keys[400] = "";
    size_t used = 0;
    if (!c->statistics || !c->n_assets)
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s: no statistics to un-normalise actions with: neither norm_stats in "
                        "config.json nor dataset_statistics.json",
                        c->root);
    for (size_t i = 0; i < c->n_assets; i++) {
        if (*key ? strcmp(*key, c->assets[i]) == 0 : c->n_assets == 1) {
            *key = c->assets[i];
            return TEC_OK;
        }
        if (used + 72 < sizeof keys)
            used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%.60s", used ? ", " : "",
                                     c->assets[i]);
        else if (keys[used - 1] != '.')
            used += (size_t)snprintf(keys + used, sizeof keys - used, ", ...");
    }
    if (!*key)
        return tec_fail(err, TEC_INVALID, "%s: choose one of the keys %s", c->statistics_in, keys);
    return tec_fail(err, TEC_NOT_FOUND, "%s: no key '%.80s'; there are %s", c->statistics_in, *key,
                    keys);
}

enum tec_status tec_checkpoint_norm_dataset(const struct tec_checkpoint *c, struct tec_norm *norm,
                                            const char *key, const char *vector,
                                            enum tec_norm_mode mode, double eps,
                                            struct tec_arena *arena, struct tec_error *err)
{
    TEC_TRY(choose_dataset(c, &key, err));
    const char *where = tec_arena_printf(arena, "%s: %s.%s", c->statistics_in, key, vector);
    const json_t *stats = json_object_get(json_object_get(c->statistics, key), vector);
    if (!where)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a path", c->root);
    if (!stats)
        return tec_fail(err, TEC_NOT_FOUND, "%s: there is none", where);
    return tec_norm_from_dataset(norm, stats, mode, eps, where, arena, err);
}

enum tec_status tec_checkpoint_processor(const struct tec_checkpoint *c, struct tec_processor *out,
                                         struct tec_error *err)
{
    char where[400];
    if (!c->pictures)
        return tec_fail(err, TEC_NOT_FOUND,
                        "%s: no preprocessor_config.json, which says how its pictures are resized; "
                        "copy it from the original checkpoint",
                        c->root);
    snprintf(where, sizeof where, "%.360s/preprocessor_config.json", c->root);
    return tec_processor_parse(out, c->pictures, where, err);
}
