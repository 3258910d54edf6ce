/* directory.c - reads the directory of a published sentence encoder: its modules, pooling and token
 * limit.
 *
 * Runs when an encoder is opened. It accepts Transformer, mean pooling and, perhaps, Normalize, and
 * refuses every other module: an encoder that is computed differently would return vectors that
 * look valid and rank texts wrongly. */
#include "graph/encoder/directory.h"

#include "base/store/file.h"
#include "base/store/tensors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TOKENS = 1 << 20, MODULES = 3 };

/* State of one reading. */
struct reading {
    struct tec_encoder_directory *out;
    const char *path;
    struct tec_heap *heap;
    struct tec_arena *arena;
    struct tec_error *err;
};

static enum tec_status no_memory(const struct reading *r)
{
    return tec_fail(r->err, TEC_NO_MEMORY, "%s: no memory for its description", r->path);
}

/* The folder of a module: the directory itself, or one in it. */
static enum tec_status folder_of(const struct reading *r, const json_t *module, size_t index,
                                 const char **out)
{
    const json_t *value = json_object_get(module, "path");
    const char *name = value ? json_string_value(value) : "";
    if (!name || (*name && !tec_tensors_is_plain(name)))
        return tec_fail(r->err, TEC_MALFORMED,
                        "%s/modules.json: [%zu].path must be a folder's plain name, or empty",
                        r->path, index);
    *out = *name ? tec_arena_printf(r->arena, "%s/%s", r->path, name) : r->path;
    return *out ? TEC_OK : no_memory(r);
}

/* The pooling's flags: the mean and nothing else. */
static enum tec_status check_flags(const struct reading *r, json_t *json, const char *file)
{
    static const char prefix[] = "pooling_mode_", mean[] = "pooling_mode_mean_tokens";
    const char *key, *mode = json_string_value(json_object_get(json, "pooling_mode"));
    json_t *value;
    bool is_mean = mode && strcmp(mode, "mean") == 0, other = mode && !is_mean;
    json_object_foreach(json, key, value)
    {
        if (strncmp(key, prefix, sizeof prefix - 1) != 0)
            continue;
        bool on = json_is_true(value);
        is_mean |= on && strcmp(key, mean) == 0;
        other |= (on && strcmp(key, mean) != 0) || !json_is_boolean(value);
    }
    return is_mean && !other
               ? TEC_OK
               : tec_fail(r->err, TEC_UNSUPPORTED,
                          "%s: only the mean over tokens is supported (%s true, all other modes "
                          "false)",
                          file, mean);
}

/* A whole number of a JSON file, 1 .. MOST_TOKENS; absent or null: 0. */
static enum tec_status whole(const struct reading *r, const json_t *json, const char *key,
                             const char *file, int *out)
{
    const json_t *value = json_object_get(json, key);
    json_int_t n = json_integer_value(value);
    *out = 0;
    if (!value || json_is_null(value))
        return TEC_OK;
    if (!json_is_integer(value) || n < 1 || n > MOST_TOKENS)
        return tec_fail(r->err, TEC_MALFORMED, "%s: %s must be a whole number 1 .. %d", file, key,
                        MOST_TOKENS);
    *out = (int)n;
    return TEC_OK;
}

static enum tec_status read_pooling(const struct reading *r, const char *folder)
{
    json_t *json = NULL;
    const char *file = tec_arena_printf(r->arena, "%s/config.json", folder);
    if (!file)
        return no_memory(r);
    TEC_TRY(tec_checkpoint_json_load(&json, file, r->heap, r->err));
    int width = 0, newer = 0;
    enum tec_status status = check_flags(r, json, file);
    if (status == TEC_OK)
        status = whole(r, json, "word_embedding_dimension", file, &width);
    if (status == TEC_OK)
        status = whole(r, json, "embedding_dimension", file, &newer);
    r->out->width = width ? width : newer;
    json_decref(json);
    return status;
}

/* Read the token limit. max_seq_length of this file takes precedence over the truncation in
 * tokenizer.json. */
static enum tec_status read_limit(const struct reading *r)
{
    json_t *json = NULL;
    const char *file =
        tec_arena_printf(r->arena, "%s/sentence_bert_config.json", r->out->checkpoint);
    if (!file)
        return no_memory(r);
    if (access(file, F_OK) != 0)
        return TEC_OK;
    TEC_TRY(tec_checkpoint_json_load(&json, file, r->heap, r->err));
    enum tec_status status = whole(r, json, "max_seq_length", file, &r->out->max_tokens);
    if (status == TEC_OK && json_is_true(json_object_get(json, "do_lower_case")))
        status = tec_fail(r->err, TEC_UNSUPPORTED,
                          "%s: do_lower_case: texts are lowered as tokenizer.json says, not before",
                          file);
    json_decref(json);
    return status;
}

static enum tec_status read_module(const struct reading *r, const json_t *module, size_t index)
{
    static const char *const names[MODULES] = {"Transformer", "Pooling", "Normalize"};
    const char *type = json_string_value(json_object_get(module, "type")), *folder = NULL;
    const char *dot = type ? strrchr(type, '.') : NULL, *name = dot ? dot + 1 : type;
    if (!name || index >= MODULES || strcmp(name, names[index]) != 0)
        return tec_fail(r->err, TEC_UNSUPPORTED,
                        "%s/modules.json: module %zu is '%.80s'; supported is Transformer, Pooling "
                        "and, perhaps, Normalize",
                        r->path, index, name ? name : "(no type)");
    TEC_TRY(folder_of(r, module, index, &folder));
    if (index == 0)
        r->out->checkpoint = folder;
    r->out->unit |= index == 2;
    return index == 1 ? read_pooling(r, folder) : TEC_OK;
}

static enum tec_status read_modules(const struct reading *r, const json_t *modules)
{
    size_t n = json_array_size(modules);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(read_module(r, json_array_get(modules, i), i));
    if (n < 2)
        return tec_fail(r->err, TEC_UNSUPPORTED,
                        "%s/modules.json: %zu modules; needs Transformer and Pooling", r->path, n);
    return read_limit(r);
}

enum tec_status tec_encoder_directory_read(struct tec_encoder_directory *out, const char *path,
                                           struct tec_heap *heap, struct tec_arena *arena,
                                           struct tec_error *err)
{
    *out = (struct tec_encoder_directory){.width = 0};
    struct reading r = {.out = out,
                        .path = tec_arena_strdup(arena, path),
                        .heap = heap,
                        .arena = arena,
                        .err = err};
    const char *file = tec_arena_printf(arena, "%s/modules.json", path);
    json_t *modules = NULL;
    if (!r.path || !file)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its description", path);
    TEC_TRY(tec_checkpoint_json_load_list(&modules, file, heap, err));
    enum tec_status status = read_modules(&r, modules);
    json_decref(modules);
    return status;
}

bool tec_encoder_directory_is(const char *path)
{
    char file[4096];
    int n = snprintf(file, sizeof file, "%s/modules.json", path);
    return n > 0 && (size_t)n < sizeof file && access(file, F_OK) == 0;
}
