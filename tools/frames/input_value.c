/* input_value.c - reads one named value as people write it: a picture file, a tensor of a
 * safetensors file, a JSON array, or a text. */
#include "tools/frames/input_value.h"

#include "base/image/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 30, MAX_LIST = 200 };

void tec_input_files_finish(struct tec_input_files *files)
{
    for (int i = 0; i < files->n; i++) {
        tec_tensors_close(files->item[i].tensors);
        tec_heap_put(files->heap, files->item[i].path);
    }
    files->n = 0;
}

static enum tec_status open_tensors(struct tec_tensors **out, struct tec_input_files *files,
                                    const char *path, struct tec_error *err)
{
    for (int i = 0; i < files->n; i++)
        if (strcmp(files->item[i].path, path) == 0) {
            *out = files->item[i].tensors;
            return TEC_OK;
        }
    if (files->n == TEC_MAX_INPUT_FILES)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: more than %d tensor files at once", path,
                        TEC_MAX_INPUT_FILES);
    size_t n = strlen(path) + 1;
    char *copy = tec_heap_get(files->heap, n);
    if (!copy)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    memcpy(copy, path, n);
    enum tec_status status = tec_tensors_open(out, path, files->heap, err);
    if (status != TEC_OK) {
        tec_heap_put(files->heap, copy);
        return status;
    }
    files->item[files->n].path = copy;
    files->item[files->n++].tensors = *out;
    return TEC_OK;
}

/* List the tensors as "button.image, button.state, ..." for a message. */
static const char *list_tensors(const struct tec_tensors *tensors, struct tec_arena *arena)
{
    char text[MAX_LIST + 80] = "";
    size_t used = 0, n = tec_tensors_count(tensors);
    for (size_t i = 0; i < n && used < MAX_LIST; i++) {
        const char *name = tec_tensors_at(tensors, i)->name;
        used += (size_t)snprintf(text + used, 60, "%s%.50s", i ? ", " : "", name);
        if (used >= MAX_LIST && i + 1 < n)
            snprintf(text + used, 16, ", ...");
    }
    const char *copy = tec_arena_strdup(arena, text);
    return copy ? copy : "";
}

/* Find "tensor", "tensor[3]" or "tensor[*]"; a tensor whose own name ends in brackets takes
 * precedence. */
static enum tec_status find_tensor(const struct tec_stored **out, int64_t *index, const char *path,
                                   const struct tec_tensors *tensors, const char *name,
                                   const struct tec_input_where *where, struct tec_error *err)
{
    *index = -1;
    *out = tec_tensors_find(tensors, name);
    size_t n = strlen(name);
    const char *bracket = n > 2 && name[n - 1] == ']' ? strrchr(name, '[') : NULL;
    if (!*out && bracket) {
        char *end = NULL, *bare = tec_arena_strndup(where->arena, name, (size_t)(bracket - name));
        bool moves = strcmp(bracket, "[*]") == 0;
        long at = moves ? 0 : strtol(bracket + 1, &end, 10);
        *out = bare ? tec_tensors_find(tensors, bare) : NULL;
        if (!moves && (end == bracket + 1 || *end != ']' || at < 0))
            return tec_fail(err, TEC_MALFORMED, "%s#%s: the index is a number from 0 on, or *",
                            path, name);
        *index = moves ? where->frame : at;
    }
    if (!*out)
        return tec_fail(err, TEC_NOT_FOUND, "%s has no tensor '%s'; it has %s", path, name,
                        list_tensors(tensors, where->arena));
    return TEC_OK;
}

/* Read the elements [first, first + count) in the type that the robot takes. */
static enum tec_status read_elements(struct tec_value *out, enum tec_input_want want,
                                     const struct tec_tensors *tensors,
                                     const struct tec_stored *stored, int64_t first, int64_t count,
                                     struct tec_arena *arena, struct tec_error *err)
{
    bool ids = want == TEC_WANT_IDS && stored->dtype == TEC_I32;
    bool plain = stored->dtype == TEC_U8 || stored->dtype == TEC_F64 || ids;
    out->kind = ids                        ? TEC_VALUE_I32
                : stored->dtype == TEC_U8  ? TEC_VALUE_U8
                : stored->dtype == TEC_F64 ? TEC_VALUE_F64
                                           : TEC_VALUE_F32;
    size_t size = stored->dtype == TEC_U8 ? 1 : stored->dtype == TEC_F64 ? 8 : 4;
    if (count > MAX_BYTES / 8)
        return tec_fail(err, TEC_UNSUPPORTED, "tensor '%s' is too large for an input",
                        stored->name);
    out->bytes = (size_t)count * size;
    void *data = tec_arena_push(arena, out->bytes + 1, 1, 16);
    if (!data)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for tensor '%s'", stored->name);
    out->data = data;
    if (plain)
        return tec_tensors_read(tensors, stored, (uint64_t)first * size, data, out->bytes, err);
    return tec_tensors_read_f32(tensors, stored, (uint64_t)first, data, (size_t)count, err);
}

static enum tec_status read_tensor(struct tec_value *out, enum tec_input_want want,
                                   const char *path, const char *name,
                                   const struct tec_input_where *where, bool *ended,
                                   struct tec_error *err)
{
    struct tec_tensors *tensors = NULL;
    const struct tec_stored *stored = NULL;
    int64_t index = -1, first = 0, count = 0;
    TEC_TRY(open_tensors(&tensors, where->files, path, err));
    enum tec_status status = find_tensor(&stored, &index, path, tensors, name, where, err);
    if (status != TEC_OK || !stored)
        return status;
    count = tec_stored_count(stored);
    int skip = index >= 0;
    if (skip && (stored->rank == 0 || index >= stored->shape[0])) {
        if (ended && tec_input_moves(name) && stored->rank > 0) {
            *ended = true;
            return TEC_OK;
        }
        return tec_fail(err, TEC_NOT_FOUND, "%s#%s: the first axis of this tensor has %lld entries",
                        path, name, stored->rank ? (long long)stored->shape[0] : 0LL);
    }
    if (skip) {
        count /= stored->shape[0];
        first = index * count;
    }
    out->rank = stored->rank - skip;
    if (out->rank > 4)
        return tec_fail(err, TEC_UNSUPPORTED, "%s#%s: rank %d; inputs have at most 4", path, name,
                        out->rank);
    for (int i = 0; i < out->rank; i++)
        out->shape[i] = stored->shape[i + skip];
    return read_elements(out, want, tensors, stored, first, count, where->arena, err);
}

static enum tec_status read_picture(struct tec_value *out, const char *path,
                                    struct tec_arena *arena, struct tec_error *err)
{
    struct tec_image image = {.height = 0};
    TEC_TRY(tec_image_load(&image, path, arena, err));
    out->kind = TEC_VALUE_U8;
    out->rank = 3;
    out->shape[0] = image.height;
    out->shape[1] = image.width;
    out->shape[2] = image.channels;
    out->data = image.pixels;
    out->bytes = (size_t)image.height * (size_t)image.width * (size_t)image.channels;
    return TEC_OK;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static enum tec_status read_file(struct tec_value *out, enum tec_input_want want, const char *given,
                                 const struct tec_input_where *where, bool *ended,
                                 struct tec_error *err)
{
    bool beside = where->folder && *where->folder && given[0] != '/';
    char *path = tec_arena_printf(where->arena, "%s%s", beside ? where->folder : "", given);
    if (!path || !given[0])
        return path ? tec_fail(err, TEC_MALFORMED, "a file name is missing after '@'")
                    : tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    char *hash = strstr(path, ".safetensors#");
    if (hash) {
        hash += strlen(".safetensors");
        *hash = '\0';
        return read_tensor(out, want, path, hash + 1, where, ended, err);
    }
    if (ends_in(path, ".safetensors"))
        return tec_fail(err, TEC_MALFORMED, "%s: name a tensor of it: @%s#tensor", path, given);
    if (want != TEC_WANT_PICTURE)
        return tec_fail(err, TEC_MALFORMED, "%s: only cameras take a picture file", path);
    return read_picture(out, path, where->arena, err);
}

bool tec_input_moves(const char *text)
{
    return ends_in(text, "[*]");
}

enum tec_status tec_input_json(json_t **out, const char *text, size_t n, struct tec_error *err)
{
    json_error_t where;
    *out = json_loadb(text, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (*out)
        return TEC_OK;
    for (char *c = where.text; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
            *c = '?';
    return tec_fail(err, TEC_MALFORMED, "column %d: not JSON: %s", where.column, where.text);
}

static enum tec_status from_text(struct tec_value *out, const char *text, size_t n,
                                 struct tec_arena *arena, struct tec_error *err)
{
    out->kind = TEC_VALUE_TEXT;
    out->bytes = n;
    out->data = tec_arena_strndup(arena, text, n);
    return out->data ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a text");
}

static const char *expected(enum tec_input_want want)
{
    static const char *const texts[] = {
        [TEC_WANT_PICTURE] = "@picture.jpg, @picture.png or @file.safetensors#tensor",
        [TEC_WANT_NUMBERS] = "a JSON array of numbers or @file.safetensors#tensor",
        [TEC_WANT_TEXT] = "a text",
        [TEC_WANT_IDS] = "a JSON array of token ids or @file.safetensors#tensor",
    };
    return texts[want];
}

enum tec_status tec_input_words(struct tec_value *out, enum tec_input_want want, const char *text,
                                size_t n, const struct tec_input_where *where, bool *ended,
                                struct tec_error *err)
{
    bool file = n > 0 && text[0] == '@' && !(n > 1 && text[1] == '@');
    if (file && strlen(text) != n)
        return tec_fail(err, TEC_MALFORMED, "a file name holds a NUL");
    if (file)
        return read_file(out, want, text + 1, where, ended, err);
    if (want == TEC_WANT_TEXT) {
        bool escaped = n > 1 && text[0] == '@';
        return from_text(out, text + escaped, n - escaped, where->arena, err);
    }
    if (n == 0 || !strchr("[-0123456789", text[0]))
        return tec_fail(err, TEC_MALFORMED, "expected %s", expected(want));
    json_t *json = NULL;
    TEC_TRY(tec_input_json(&json, text, n, err));
    enum tec_status status = tec_input_array(out, want, json, where->arena, err);
    json_decref(json);
    return status;
}
