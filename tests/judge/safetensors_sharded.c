/* safetensors_sharded.c - judges the reading of sharded checkpoints: a folder of shards must give
 * the same tensors as the single file beside it. */
#include "base/store/safetensors.h"
#include "tests/judge/verify.h"

#include <string.h>

static bool same_tensor(struct tec_verify *v, const struct tec_tensors *a,
                        const struct tec_stored *x, const struct tec_tensors *b,
                        const struct tec_stored *y)
{
    if (!y || x->dtype != y->dtype || x->rank != y->rank || x->bytes != y->bytes ||
        memcmp(x->shape, y->shape, sizeof x->shape) != 0)
        return false;
    size_t n = (size_t)x->bytes;
    char *p = tec_heap_get(v->heap, 2 * n);
    bool same = p && tec_tensors_read(a, x, 0, p, n, NULL) == TEC_OK &&
                tec_tensors_read(b, y, 0, p + n, n, NULL) == TEC_OK && memcmp(p, p + n, n) == 0;
    tec_heap_put(v->heap, p);
    return same;
}

static const char *judge_content(struct tec_verify *v, const struct tec_tensors *got,
                                 const struct tec_tensors *want)
{
    if (tec_tensors_count(got) != tec_tensors_count(want))
        return tec_arena_printf(v->arena, "%zu tensors, not %zu", tec_tensors_count(got),
                                tec_tensors_count(want));
    for (size_t i = 0; i < tec_tensors_count(want); i++) {
        const struct tec_stored *x = tec_tensors_at(want, i);
        if (!same_tensor(v, want, x, got, tec_tensors_find(got, x->name)))
            return tec_arena_printf(v->arena, "tensor '%s' differs", x->name);
        tec_verify_compared(v, x->name);
    }
    return NULL;
}

static void judge_dir(struct tec_verify *v, const json_t *entry, const struct tec_tensors *want)
{
    struct tec_error err = {0};
    struct tec_tensors *t = NULL;
    const char *name = json_string_value(json_object_get(entry, "dir"));
    const char *expect = json_string_value(json_object_get(entry, "expect"));
    const char *path = tec_arena_printf(v->arena, "%s/%s", v->dir, name ? name : "?");
    const char *why = NULL;
    if (!name || !expect || !path) {
        tec_verify_report(v, name ? name : "?", 1.0, 0.0, 0.0, false, NULL, "no dir or expect");
        return;
    }
    enum tec_status status = tec_tensors_open(&t, path, v->heap, &err);
    if (status != TEC_OK && (strcmp(expect, "accept") == 0 || status == TEC_NO_MEMORY))
        why = err.message;
    else if (status == TEC_OK && strcmp(expect, "reject") == 0)
        why = "opened, but it must be refused";
    else if (status == TEC_OK)
        why = judge_content(v, t, want);
    tec_verify_report(v, name, why ? 1.0 : 0.0, 0.0, 0.0, !why, NULL,
                      why || status == TEC_OK ? why : err.message);
    tec_tensors_close(t);
}

enum tec_status tec_verify_safetensors_sharded(struct tec_verify *v, struct tec_error *err)
{
    json_error_t where;
    struct tec_tensors *want = NULL;
    const char *path = tec_arena_printf(v->arena, "%s/sharded.json", v->dir);
    const char *expected = tec_arena_printf(v->arena, "%s/expected.safetensors", v->dir);
    if (!path || !expected)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the paths of the case");
    TEC_TRY(tec_tensors_open(&want, expected, v->heap, err));
    json_t *list = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    const json_t *cases = json_object_get(list, "cases");
    size_t n = json_array_size(cases);
    for (size_t i = 0; i < n; i++)
        judge_dir(v, json_array_get(cases, i), want);
    json_decref(list);
    tec_tensors_close(want);
    return n ? TEC_OK : tec_fail(err, TEC_IO, "%s: cannot be read or lists no cases", path);
}
