/* directory.c - reads the directory of a published sentence encoder: its modules, pooling and token
 * limit.
 *
 * Runs when an encoder is opened. It accepts Transformer, Pooling and, perhaps, Normalize, and
 * refuses every other module and pooling: an encoder that is computed differently would return
 * vectors that look valid and rank texts wrongly. */
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
    bool prompt_pooled; /* rows of the prompt are pooled, too */
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

/* What may be taken of a text's rows, as older files (a flag for each) and newer ones write it. */
static const struct {
    const char *flag, *mode;
    enum tec_encoder_pool pool;
} poolings[] = {
    {"pooling_mode_mean_tokens", "mean", TEC_ENCODER_POOL_MEAN},
    {"pooling_mode_cls_token", "cls", TEC_ENCODER_POOL_FIRST},
    {"pooling_mode_lasttoken", "lasttoken", TEC_ENCODER_POOL_LAST},
};

/* Take one mode, which `key` or `mode` names; a second one would be a longer vector. */
static enum tec_status take_pooling(const struct reading *r, const char *key, const char *mode,
                                    const char *file, int *taken)
{
    const char *name = mode ? mode : key;
    if ((*taken)++)
        return tec_fail(r->err, TEC_UNSUPPORTED,
                        "%s: '%.80s' is a second pooling; vectors side by side are not supported",
                        file, name);
    for (size_t i = 0; i < sizeof poolings / sizeof poolings[0]; i++) {
        if (strcmp(mode ? poolings[i].mode : poolings[i].flag, name) != 0)
            continue;
        r->out->pool = poolings[i].pool;
        return TEC_OK;
    }
    return tec_fail(r->err, TEC_UNSUPPORTED,
                    "%s: pooling '%.80s' is not supported; mean, cls and lasttoken are", file,
                    name);
}

/* The pooling that is on: one and no other. */
static enum tec_status read_mode(const struct reading *r, json_t *json, const char *file)
{
    static const char prefix[] = "pooling_mode_";
    const char *key, *mode = json_string_value(json_object_get(json, "pooling_mode"));
    json_t *value;
    int taken = 0;
    if (mode)
        TEC_TRY(take_pooling(r, NULL, mode, file, &taken));
    else if (json_object_get(json, "pooling_mode"))
        return tec_fail(r->err, TEC_UNSUPPORTED, "%s: pooling_mode must be one word", file);
    json_object_foreach(json, key, value)
    {
        if (strncmp(key, prefix, sizeof prefix - 1) != 0)
            continue;
        if (!json_is_boolean(value))
            return tec_fail(r->err, TEC_MALFORMED, "%s: %.80s must be true or false", file, key);
        if (json_is_true(value))
            TEC_TRY(take_pooling(r, key, NULL, file, &taken));
    }
    return taken ? TEC_OK
                 : tec_fail(r->err, TEC_UNSUPPORTED,
                            "%s: no pooling is on; mean, cls and lasttoken are supported", file);
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

static enum tec_status read_pooling(struct reading *r, const char *folder)
{
    json_t *json = NULL;
    const char *file = tec_arena_printf(r->arena, "%s/config.json", folder);
    if (!file)
        return no_memory(r);
    TEC_TRY(tec_checkpoint_json_load(&json, file, r->heap, r->err));
    int width = 0, newer = 0;
    enum tec_status status = read_mode(r, json, file);
    if (status == TEC_OK)
        status = whole(r, json, "word_embedding_dimension", file, &width);
    if (status == TEC_OK)
        status = whole(r, json, "embedding_dimension", file, &newer);
    r->out->width = width ? width : newer;
    r->prompt_pooled = !json_is_false(json_object_get(json, "include_prompt"));
    json_decref(json);
    return status;
}

/* A file of a folder, NULL where there is none; the caller drops it. `reals`: it may have whole
 * numbers beyond 64 bits. */
static enum tec_status open_in(const struct reading *r, const char *folder, const char *name,
                               bool reals, const char **path, json_t **out)
{
    *out = NULL;
    *path = tec_arena_printf(r->arena, "%s/%s", folder, name);
    if (!*path)
        return no_memory(r);
    if (access(*path, F_OK) != 0)
        return TEC_OK;
    return reals ? tec_checkpoint_json_load_reals(out, *path, r->heap, r->err)
                 : tec_checkpoint_json_load(out, *path, r->heap, r->err);
}

/* The limit of a folder whose sentence_bert_config.json has none, as newer ones: the tokenizer's,
 * which is a number beyond all use where it knows none. */
static enum tec_status read_tokenizers_limit(const struct reading *r)
{
    const char *file;
    json_t *json;
    TEC_TRY(open_in(r, r->out->checkpoint, "tokenizer_config.json", true, &file, &json));
    double n = json_number_value(json_object_get(json, "model_max_length"));
    r->out->usual_tokens = n >= 1 && n <= MOST_TOKENS ? (int)n : 0;
    json_decref(json);
    return TEC_OK;
}

/* Read the token limit. max_seq_length of this file takes precedence over the truncation in
 * tokenizer.json. */
static enum tec_status read_limit(const struct reading *r)
{
    const char *file;
    json_t *json;
    TEC_TRY(read_tokenizers_limit(r));
    TEC_TRY(open_in(r, r->out->checkpoint, "sentence_bert_config.json", false, &file, &json));
    enum tec_status status = whole(r, json, "max_seq_length", file, &r->out->max_tokens);
    if (status == TEC_OK && json_is_true(json_object_get(json, "do_lower_case")))
        status = tec_fail(r->err, TEC_UNSUPPORTED,
                          "%s: do_lower_case: texts are lowered as tokenizer.json says, not before",
                          file);
    const json_t *text = json_object_get(json_object_get(json, "modality_config"), "text");
    const char *rows = json_string_value(json_object_get(text, "method_output_name"));
    if (status == TEC_OK && rows && strcmp(rows, "last_hidden_state") != 0)
        status = tec_fail(r->err, TEC_UNSUPPORTED,
                          "%s: modality_config.text.method_output_name '%.80s' is not supported; "
                          "last_hidden_state is",
                          file, rows);
    json_decref(json);
    return status;
}

/* Read the prompt that stands before every text unless the caller names another one. */
static enum tec_status read_prompt(const struct reading *r)
{
    const char *file;
    json_t *json;
    TEC_TRY(open_in(r, r->path, "config_sentence_transformers.json", false, &file, &json));
    const char *name = json_string_value(json_object_get(json, "default_prompt_name"));
    const json_t *prompt = json_object_get(json_object_get(json, "prompts"), name ? name : "");
    enum tec_status status = TEC_OK;
    if (name && !json_is_string(prompt))
        status = tec_fail(r->err, TEC_MALFORMED,
                          "%s: default_prompt_name '%.80s' is none of its prompts", file, name);
    else if (name && !r->prompt_pooled && json_string_length(prompt))
        status = tec_fail(r->err, TEC_UNSUPPORTED,
                          "%s: default_prompt_name '%.80s' with include_prompt false in the "
                          "pooling's config.json is not supported",
                          file, name);
    else if (name && !(r->out->prompt = tec_arena_strdup(r->arena, json_string_value(prompt))))
        status = no_memory(r);
    json_decref(json);
    return status;
}

static enum tec_status read_module(struct reading *r, const json_t *module, size_t index)
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

static enum tec_status read_modules(struct reading *r, const json_t *modules)
{
    size_t n = json_array_size(modules);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(read_module(r, json_array_get(modules, i), i));
    if (n < 2)
        return tec_fail(r->err, TEC_UNSUPPORTED,
                        "%s/modules.json: %zu modules; needs Transformer and Pooling", r->path, n);
    TEC_TRY(read_limit(r));
    return read_prompt(r);
}

enum tec_status tec_encoder_directory_read(struct tec_encoder_directory *out, const char *path,
                                           struct tec_heap *heap, struct tec_arena *arena,
                                           struct tec_error *err)
{
    *out = (struct tec_encoder_directory){.width = 0};
    struct reading r = {.out = out,
                        .path = tec_arena_strdup(arena, path),
                        .prompt_pooled = true,
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

enum tec_status tec_encoder_directory_limit(int *tokens, const struct tec_encoder_directory *d,
                                            const struct tec_text *text, struct tec_error *err)
{
    const struct tec_positions *p = text ? &text->position : NULL;
    int most = !text ? MOST_TOKENS : p->name ? p->rows - p->first : text->max_tokens;
    int said = d->max_tokens ? d->max_tokens : d->usual_tokens < most ? d->usual_tokens : 0;
    if (said > most)
        return tec_fail(err, TEC_MALFORMED,
                        "%s/sentence_bert_config.json: max_seq_length %d; the model has positions "
                        "for %d tokens",
                        d->checkpoint, said, most);
    *tokens = said || !text ? said : most;
    return TEC_OK;
}

const char *tec_encoder_pool_name(enum tec_encoder_pool pool)
{
    size_t i = 0;
    while (poolings[i].pool != pool)
        i++;
    return poolings[i].mode;
}

bool tec_encoder_directory_is(const char *path)
{
    char file[4096];
    int n = snprintf(file, sizeof file, "%s/modules.json", path);
    return n > 0 && (size_t)n < sizeof file && access(file, F_OK) == 0;
}
