/* safetensors_files.c - judges the reading of safetensors files: valid files must give the listed
 * tensors and metadata, and malformed ones must be refused. */
#include "base/store/safetensors.h"
#include "tests/judge/sha256.h"
#include "tests/judge/verify.h"

#include <stdlib.h>
#include <string.h>

/* Hash a tensor's bytes; false with a reason if they cannot be read. */
static bool hash_tensor(struct tec_verify *v, const struct tec_tensors *t,
                        const struct tec_stored *s, char text[65], struct tec_error *err)
{
    void *bytes = tec_heap_get(v->heap, (size_t)s->bytes);
    bool read = bytes && tec_tensors_read(t, s, 0, bytes, (size_t)s->bytes, err) == TEC_OK;
    if (read)
        tec_sha256(bytes, (size_t)s->bytes, text);
    tec_heap_put(v->heap, bytes);
    return read;
}

static const char *judge_tensor(struct tec_verify *v, const struct tec_tensors *t,
                                const json_t *want)
{
    struct tec_error err;
    char hash[65];
    const char *name = json_string_value(json_object_get(want, "name"));
    const char *dtype = json_string_value(json_object_get(want, "dtype"));
    const char *sha256 = json_string_value(json_object_get(want, "sha256"));
    const json_t *shape = json_object_get(want, "shape");
    const struct tec_stored *s = name ? tec_tensors_find(t, name) : NULL;
    if (!s || !dtype || !sha256)
        return tec_arena_printf(v->arena, "no tensor '%s'", name ? name : "?");
    bool same = strcmp(tec_dtype_name(s->dtype), dtype) == 0 &&
                (size_t)s->rank == json_array_size(shape) &&
                (double)s->bytes == json_number_value(json_object_get(want, "bytes"));
    for (int i = 0; same && i < s->rank; i++)
        same = (double)s->shape[i] == json_number_value(json_array_get(shape, (size_t)i));
    if (!same)
        return tec_arena_printf(v->arena, "tensor '%s': dtype or shape differ", name);
    if (!hash_tensor(v, t, s, hash, &err))
        return tec_arena_strdup(v->arena, err.message);
    if (strcmp(hash, sha256) != 0)
        return tec_arena_printf(v->arena, "tensor '%s': bytes differ", name);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp((*(const struct tec_stored *const *)a)->name,
                  (*(const struct tec_stored *const *)b)->name);
}

/* With many tensors the case gives a single hash, of each tensor's name and hash in the order of
 * names. */
static const char *judge_all(struct tec_verify *v, const struct tec_tensors *t, const char *sha256)
{
    struct tec_error err;
    size_t n = tec_tensors_count(t), used = 0, size = 0;
    const struct tec_stored **order = TEC_NEW(v->arena, n, const struct tec_stored *);
    if (!order)
        return "no memory";
    for (size_t i = 0; i < n; i++) {
        order[i] = tec_tensors_at(t, i);
        size += strlen(order[i]->name) + 64;
    }
    qsort(order, n, sizeof(void *), compare);
    char hash[65], *text = TEC_NEW(v->arena, size + 1, char);
    for (size_t i = 0; text && i < n; i++) {
        if (!hash_tensor(v, t, order[i], hash, &err))
            return "a tensor cannot be read";
        used += (size_t)snprintf(text + used, size + 1 - used, "%s%s", order[i]->name, hash);
    }
    if (!text)
        return "no memory";
    tec_sha256(text, used, hash);
    return sha256 && strcmp(hash, sha256) == 0 ? NULL : "names or bytes differ";
}

static const char *judge_metadata(struct tec_verify *v, const struct tec_tensors *t, json_t *want)
{
    const char *key;
    json_t *value;
    json_object_foreach(want, key, value)
    {
        const struct tec_metadata *m = tec_tensors_metadata_entry(t, key);
        if (!m || m->value_bytes != json_string_length(value) ||
            memcmp(m->value, json_string_value(value), m->value_bytes) != 0)
            return tec_arena_printf(v->arena, "metadata '%s' differs", key);
    }
    return NULL;
}

/* The reason why the file's content differs from the entry, or NULL if it does not. */
static const char *judge_content(struct tec_verify *v, const struct tec_tensors *t,
                                 const json_t *entry)
{
    const json_t *tensors = json_object_get(entry, "tensors");
    const char *why = judge_metadata(v, t, json_object_get(entry, "metadata"));
    size_t want =
        json_is_array(tensors) ? json_array_size(tensors) : (size_t)json_number_value(tensors);
    if (tensors && tec_tensors_count(t) != want)
        return tec_arena_printf(v->arena, "%zu tensors, not %zu", tec_tensors_count(t), want);
    if (json_is_number(tensors) && !why)
        why = judge_all(v, t, json_string_value(json_object_get(entry, "sha256_of_all")));
    for (size_t i = 0; !why && i < json_array_size(tensors); i++)
        why = judge_tensor(v, t, json_array_get(tensors, i));
    return why;
}

static void judge_file(struct tec_verify *v, const json_t *entry)
{
    struct tec_error err = {0};
    struct tec_tensors *t = NULL;
    const char *name = json_string_value(json_object_get(entry, "file"));
    const char *expect = json_string_value(json_object_get(entry, "expect"));
    const char *path = tec_arena_printf(v->arena, "%s/files/%s", v->dir, name ? name : "?");
    const char *why = NULL;
    if (!name || !expect || !path) {
        tec_verify_report(v, name ? name : "?", 1.0, 0.0, 0.0, false, NULL, "no file or expect");
        return;
    }
    enum tec_status status = tec_tensors_open(&t, path, v->heap, &err);
    bool opened = status == TEC_OK, may_open = strcmp(expect, "reject") != 0;
    bool refused = status == TEC_MALFORMED || status == TEC_UNSUPPORTED;
    if (!opened && (!refused || strcmp(expect, "accept") == 0))
        why = err.message;
    else if (opened && !may_open)
        why = "opened, but it must be refused";
    else if (opened)
        why = judge_content(v, t, entry);
    tec_verify_report(v, name, why ? 1.0 : 0.0, 0.0, 0.0, !why, NULL,
                      why || opened ? why : err.message);
    tec_tensors_close(t);
}

enum tec_status tec_verify_safetensors_files(struct tec_verify *v, struct tec_error *err)
{
    json_error_t where;
    const char *path = tec_arena_printf(v->arena, "%s/files.json", v->dir);
    /* The case needs this: one expected metadata value holds a NUL, and a dimension is 2^64 - 1. */
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    json_t *list = path ? json_load_file(path, flags, &where) : NULL;
    const json_t *files = json_object_get(list, "files");
    size_t n = json_array_size(files);
    for (size_t i = 0; i < n; i++)
        judge_file(v, json_array_get(files, i));
    json_decref(list);
    return n ? TEC_OK : tec_fail(err, TEC_IO, "%s: cannot be read or lists no files", path);
}
