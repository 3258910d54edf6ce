/* derive.c - the pipeline of a checkpoint that describes its robot, as the text of a file.
 *
 * Runs at load. What a type needs is data: pipelines/robots/lerobot/pipeline.lua makes the text in
 * pieces, which are joined here, since a file's sandbox has no functions over strings. Its refusals
 * and its warnings begin with "FILE: FIELD: "; the field's place is found again among the tokens of
 * that file. */
#include "graph/load/derive.h"
#include "base/lua.h"
#include "base/number.h"
#include "base/store/file.h"
#include "base/text/bytes.h"
#include "graph/load/source.h"
#include "graph/model/model.h"
#include "graph/transform/robot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct deriving {
    const char *path, *robots, *models; /* the checkpoint, and folders of descriptions */
    const char *scripts, *embodiment;   /* the folder in `robots` for its layout; or NULL */
    struct tec_checkpoint *checkpoint;
    struct tec_arena *arena;
    struct tec_diagnostics *d;
    struct tec_error *err;
};

/* --- refusals -------------------------------------------------------------------------------- */

/* Read a file of the checkpoint as a source; NULL where there is none, or none of sense. */
static struct tec_source *open_source(const struct deriving *x, const char *file)
{
    uint64_t bytes;
    int fd;
    struct tec_source *s = TEC_NEW(x->arena, 1, struct tec_source);
    const char *path = tec_arena_printf(x->arena, "%s/%s", x->checkpoint->root, file);
    if (!s || !path || tec_path_open(path, &fd, &bytes, NULL) != TEC_OK)
        return NULL;
    char *text = bytes <= TEC_MAX_SOURCE ? tec_arena_push(x->arena, (size_t)bytes + 1, 1, 1) : NULL;
    bool bad = !text || tec_path_read(fd, path, 0, text, (size_t)bytes, NULL) != TEC_OK;
    close(fd);
    *s = (struct tec_source){.file = path, .text = text, .n = (size_t)bytes, .json = true};
    if (bad || !tec_source_lex(s, x->arena) || s->n_tokens == 0)
        return NULL;
    tec_diagnostics_source(x->d, path, text, s->n);
    return s;
}

/* One step of a field's path, `.name`, `["name"]` or `[3]`, to the entry of a table. */
static bool step_into(const struct tec_source *s, int *open, const char **field,
                      struct tec_source_span *span)
{
    const char *at = *field;
    char key[200];
    bool quoted = strncmp(at, "[\"", 2) == 0;
    if (*at == '[' && !quoted) {
        char *end;
        long item = strtol(at + 1, &end, 10);
        if (*end != ']' || item < 0 || item > 1 << 20)
            return false;
        *field = end + 1;
        return tec_source_find_key(s, *open, NULL, (int)item, span);
    }
    at += quoted ? 2 : *at == '.';
    const char *end = quoted ? strstr(at, "\"]") : at + strcspn(at, ".[");
    if (!end || end == at || (size_t)(end - at) >= sizeof key)
        return false;
    snprintf(key, sizeof key, "%.*s", (int)(end - at), at);
    *field = quoted ? end + 2 : end;
    return tec_source_find_key(s, *open, key, 0, span);
}

/* The place of a field; of the nearest table around it where the file lacks it. */
static struct tec_where find_field(const struct tec_source *s, const char *field)
{
    struct tec_source_span span;
    struct tec_where where = {s->file, 0, 0, 0};
    int open = 0;
    while (*field && step_into(s, &open, &field, &span)) {
        int first = *field || span.key_first < 0 ? span.first : span.key_first;
        bool whole = s->tokens[span.first].kind != TEC_TOKEN_OPEN;
        where = tec_source_where(s, first, whole ? span.last : first);
        open = span.first;
    }
    return where;
}

/* The end of a field's path: the colon and space behind a text without spaces outside of quotes;
 * NULL: there is none. */
static const char *end_of_field(const char *at)
{
    bool quoted = false;
    for (; *at && (quoted || *at != ' '); at++) {
        quoted ^= *at == '"';
        if (!quoted && at[0] == ':' && at[1] == ' ')
            return at;
    }
    return NULL;
}

/* Report a message that begins with the name of one of the checkpoint's files at the place of its
 * field; false: it begins with none. */
static bool report(const struct deriving *x, enum tec_code code, const char *message)
{
    static const char *const files[] = {"config.json",
                                        "policy_preprocessor.json",
                                        "policy_postprocessor.json",
                                        "experiment_cfg/metadata.json",
                                        "processor_config.json",
                                        "statistics.json",
                                        "embodiment_id.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t n = strlen(files[i]);
        if (strncmp(message, files[i], n) != 0 || strncmp(message + n, ": ", 2) != 0)
            continue;
        const char *field = message + n + 2, *end = end_of_field(field);
        struct tec_source *s = open_source(x, files[i]);
        const char *name = end ? tec_arena_strndup(x->arena, field, (size_t)(end - field)) : NULL;
        struct tec_where where = {s ? s->file : x->path, 0, 0, 0};
        if (s && name)
            where = find_field(s, name);
        tec_diagnostics_add(x->d, code, where, "%s", s ? field : message);
        return true;
    }
    return false;
}

/* Report what a description refused, at its place. */
static enum tec_status blame(const struct deriving *x, const char *script, enum tec_status status)
{
    const char *message = x->err->message;
    size_t n = strlen(script);
    size_t root = strlen(x->checkpoint->root);
    if (strncmp(message, script, n) == 0 && strncmp(message + n, ": ", 2) == 0)
        message += n + 2;
    else if (strncmp(message, x->checkpoint->root, root) == 0 && message[root] == '/')
        message += root + 1;
    return report(x, TEC_E011, message) ? tec_diagnostics_first(x->d, x->path, x->err) : status;
}

/* Warn of what the checkpoint's files say in vain. */
static void warn(const struct deriving *x, const json_t *warnings)
{
    size_t i;
    json_t *one;
    json_array_foreach(warnings, i, one)
    {
        if (json_is_string(one))
            report(x, TEC_W113, json_string_value(one));
    }
}

/* Warn of files of statistics that are not there, of a checkpoint that was opened bare. */
static void warn_missing(const struct deriving *x, const char *file, const json_t *processor)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(processor, "steps"), i, step)
    {
        const char *name = json_string_value(json_object_get(step, "state_file"));
        const char *path =
            name ? tec_arena_printf(x->arena, "%s/%s", x->checkpoint->root, name) : NULL;
        if (!path || access(path, F_OK) == 0)
            continue;
        const char *message =
            tec_arena_printf(x->arena,
                             "%s: steps[%zu].state_file: '%s' is not there: weights are random, "
                             "and what its statistics are for is not normalised",
                             file, i, name);
        if (message)
            report(x, TEC_W116, message);
    }
}

/* --- the text --------------------------------------------------------------------------------- */

static void add(struct tec_bytes *out, const char *text)
{
    tec_bytes_add(out, text, strlen(text));
}

/* A string of Lua: what is no printable ASCII or UTF-8 is written as a number. */
static void add_quoted(struct tec_bytes *out, const char *text, size_t n)
{
    char byte[8];
    add(out, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        bool plain = c >= ' ' && c != '"' && c != '\\' && c != 127;
        snprintf(byte, sizeof byte, plain ? "%c" : "\\%03d", c);
        add(out, byte);
    }
    add(out, "\"");
}

/* The fewest digits that are read as this number again. */
static void add_real(struct tec_bytes *out, double x)
{
    char number[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, x);
        if (strtod(number, NULL) == x)
            break;
    }
    add(out, number);
    if (!strpbrk(number, ".e"))
        add(out, ".0");
}

/* Pieces in the order of the list, which may hold lists; jansson bounds how deep. */
static enum tec_status join(struct tec_bytes *out, const json_t *piece, struct tec_error *err)
{
    const json_t *quoted = json_object_get(piece, "quote"), *one;
    char number[32];
    size_t i;
    if (json_is_array(piece)) {
        json_array_foreach(piece, i, one) TEC_TRY(join(out, one, err));
        return TEC_OK;
    }
    if (json_is_string(quoted))
        add_quoted(out, json_string_value(quoted), json_string_length(quoted));
    else if (json_is_string(piece))
        tec_bytes_add(out, json_string_value(piece), json_string_length(piece));
    else if (json_is_integer(piece)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(piece));
        add(out, number);
    } else if (json_is_real(piece))
        add_real(out, json_real_value(piece));
    else
        return tec_fail(err, TEC_MALFORMED, "a piece is neither a text, a number nor a quote");
    return TEC_OK;
}

/* Evaluate the derivation; *out is owned by the caller. */
static enum tec_status evaluate(json_t **out, const struct deriving *x, json_t *given)
{
    const char *script = tec_arena_printf(x->arena, "%s/%s/pipeline.lua", x->robots, x->scripts);
    if (!script)
        return tec_fail(x->err, TEC_NO_MEMORY, "%s: no memory for a path", x->path);
    enum tec_status status =
        tec_lua_read_given(out, script, x->robots, NULL, given, x->arena->heap, x->err);
    return status == TEC_OK || status == TEC_NO_MEMORY ? status : blame(x, script, status);
}

/* Height and width of each slot's picture. */
static json_t *sizes_of(const struct tec_model *model)
{
    json_t *sizes = json_array();
    for (int i = 0; i < model->n_slots; i++) {
        struct tec_picture_size size = tec_model_picture(model, i);
        if (json_array_append_new(sizes, json_pack("[i, i]", size.h, size.w)) != 0) {
            json_decref(sizes);
            return NULL;
        }
    }
    return sizes;
}

/* The numbers of the model, as the checkpoint's files give them. */
static enum tec_status add_numbers(const struct deriving *x, json_t *given, const char *arch)
{
    struct tec_model *model = NULL;
    json_t *overrides = json_object(), *slots = json_object_get(given, "slots");
    json_t *embodiment = json_object_get(given, "embodiment");
    bool poor = !overrides;
    if (json_array_size(slots) > 0)
        poor |= json_object_set(overrides, "slots", slots) != 0;
    if (embodiment)
        poor |= json_object_set(overrides, "embodiment", embodiment) != 0;
    const struct tec_model_choice choice = {.root = x->models,
                                            .arch = arch,
                                            .size = "full",
                                            .overrides = overrides,
                                            .checkpoint = x->checkpoint};
    enum tec_status status = poor ? tec_fail(x->err, TEC_NO_MEMORY, "no memory")
                                  : tec_model_open(&model, &choice, x->arena->heap, x->err);
    json_decref(overrides);
    TEC_TRY(status);
    json_t *numbers = json_pack("{s:o, s:i, s:i, s:i, s:i}", "sizes", sizes_of(model), "tokens",
                                model->vision.tokens, "rows", tec_model_encoded(model), "horizon",
                                model->flow.horizon, "width", model->flow.dim);
    bool bad = json_object_set_new(given, "numbers", numbers) != 0 ||
               json_object_set_new(given, "weights", json_string(x->path)) != 0;
    tec_model_close(model);
    return bad ? tec_fail(x->err, TEC_NO_MEMORY, "%s: no memory for its numbers", x->path) : TEC_OK;
}

static enum tec_status write_text(struct tec_bytes *out, const struct deriving *x, json_t *given)
{
    json_t *arch = NULL, *pieces = NULL;
    TEC_TRY(evaluate(&arch, x, given));
    enum tec_status status = add_numbers(x, given, json_string_value(arch));
    json_decref(arch);
    if (status != TEC_OK)
        return status == TEC_NO_MEMORY ? status : blame(x, "", status);
    TEC_TRY(evaluate(&pieces, x, given));
    warn(x, json_object_get(pieces, "unread"));
    if (x->checkpoint->bare) {
        warn_missing(x, "policy_preprocessor.json", x->checkpoint->preprocessor);
        warn_missing(x, "policy_postprocessor.json", x->checkpoint->postprocessor);
    }
    const json_t *text = json_object_get(pieces, "text");
    status = join(out, text ? text : pieces, x->err);
    json_decref(pieces);
    TEC_TRY(status);
    if (out->full)
        return tec_fail(x->err, TEC_MALFORMED, "%s: its pipeline has more than %d bytes", x->path,
                        TEC_MAX_SOURCE);
    return out->failed ? tec_fail(x->err, TEC_NO_MEMORY, "%s: no memory for its pipeline", x->path)
                       : TEC_OK;
}

static enum tec_status derive(struct tec_bytes *out, struct deriving *x)
{
    json_t *given = NULL;
    enum tec_status status = tec_robot_given(&given, x->checkpoint, x->arena, x->err);
    if (status == TEC_MALFORMED)
        return blame(x, "", status);
    TEC_TRY(status);
    if (x->embodiment &&
        json_object_set_new(given, "embodiment", json_string(x->embodiment)) != 0) {
        json_decref(given);
        return tec_fail(x->err, TEC_NO_MEMORY, "%s: no memory for its tag", x->path);
    }
    status = write_text(out, x, given);
    json_decref(given);
    return status;
}

/* The folder of the scripts for a checkpoint that describes its robot; NULL: it does not. */
static const char *scripts_of(const struct tec_checkpoint *c)
{
    if (c->layout == TEC_LAYOUT_LEROBOT)
        return "lerobot";
    return c->robots ? "experiment" : NULL;
}

/* Without weights a folder may still be one that can be run. */
static enum tec_status open_checkpoint(struct deriving *x, const struct tec_checkpoint_source *from)
{
    struct tec_checkpoint_source bare = *from;
    struct tec_heap *heap = x->arena->heap;
    enum tec_status status = tec_checkpoint_open_source(&x->checkpoint, from, heap, x->err);
    bare.bare = true;
    if (status != TEC_NOT_FOUND || from->bare ||
        tec_checkpoint_open_source(&x->checkpoint, &bare, heap, NULL) != TEC_OK)
        return status;
    const struct tec_error says = x->err ? *x->err : (struct tec_error){.message = ""};
    bool weights = x->checkpoint->tensors != NULL;
    tec_checkpoint_close(x->checkpoint);
    x->checkpoint = NULL;
    if (!weights)
        tec_fail(x->err, status, "%s; --random-weights SEED makes some up", says.message);
    return status;
}

enum tec_status tec_pipeline_derive(const char **text, size_t *n,
                                    const struct tec_checkpoint_source *from, const char *root,
                                    struct tec_arena *arena, struct tec_diagnostics *d,
                                    struct tec_error *err)
{
    const char *path = from->path;
    struct deriving x = {.path = path,
                         .embodiment = from->robot,
                         .robots = tec_arena_printf(arena, "%s/robots", root),
                         .models = tec_arena_printf(arena, "%s/models", root),
                         .arena = arena,
                         .d = d,
                         .err = err};
    struct tec_bytes out;
    if (!x.robots || !x.models)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for paths", path);
    TEC_TRY(open_checkpoint(&x, from));
    tec_bytes_init(&out, arena, TEC_MAX_SOURCE);
    x.scripts = scripts_of(x.checkpoint);
    enum tec_status status =
        x.scripts
            ? derive(&out, &x)
            : tec_fail(err, TEC_MALFORMED,
                       "%s: this is a checkpoint folder of layout %s, which does not describe its "
                       "robot: give a pipeline file, and this folder with --weights",
                       path, tec_layout_name(x.checkpoint->layout));
    tec_checkpoint_close(x.checkpoint);
    *text = out.at;
    *n = out.n;
    return status;
}
