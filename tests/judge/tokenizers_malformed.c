/* tokenizers_malformed.c - judges malformed tokenizer files: each must be refused or load as the
 * case says, within bounded memory. */
#include "tests/judge/tokenizers_case.h"

#include <string.h>

/* The memory that reading a file of n bytes may take; the constant covers short files. */
static int64_t memory_bound(int64_t n)
{
    return 64 * n + ((int64_t)16 << 20);
}

/* Whether the tokenizer works: one that loads must also encode and decode. */
static bool works(const struct tec_tokenizer *t, struct tec_heap *heap)
{
    static const char text[] = "hello robot 12\n\xE6\x9C\xBA";
    int ids[256];
    size_t n, bytes;
    char *back;
    struct tec_arena arena;
    struct tec_error err;
    tec_arena_init(&arena, heap);
    bool good = tec_tokenizer_encode(t, text, sizeof text - 1, (struct tec_encode){true, false},
                                     ids, 256, &n, &arena, &err) == TEC_OK &&
                n <= 256 &&
                tec_tokenizer_decode(t, ids, n, false, &arena, &back, &bytes, &err) == TEC_OK;
    tec_arena_finish(&arena);
    return good;
}

static void judge(struct tec_verify *v, const char *file, const char *expect)
{
    struct tec_heap heap = {0};
    struct tec_tokenizer *t = NULL;
    struct tec_error err = {TEC_OK, ""};
    const char *path = tec_case_path(v, file), *note = NULL;
    bool loads = path && tec_tokenizer_open(&t, path, &heap, &err) == TEC_OK;
    bool reject = strcmp(expect, "reject") == 0, accept = strcmp(expect, "accept") == 0;
    if (!reject && !accept && strcmp(expect, "either") != 0)
        note = "malformed.json expects something unknown";
    else if (loads ? reject : accept)
        note = loads ? "was accepted" : tec_arena_strdup(v->arena, err.message);
    else if (!loads && err.message[0] == '\0')
        note = "refused without a reason";
    else if (!loads && (err.status == TEC_NOT_FOUND || err.status == TEC_IO))
        note = tec_arena_strdup(v->arena, err.message);
    else if (loads && !works(t, &heap))
        note = "loads but does not encode";
    tec_tokenizer_close(t);
    if (!note && heap.live != 0)
        note = "memory was not given back";
    if (!note && heap.peak > memory_bound(200923))
        note = "took too much memory";
    tec_verify_report(v, file, note ? 1.0 : 0.0, 0.0, 0.0, !note, NULL, note);
}

enum tec_status tec_verify_tokenizers_malformed(struct tec_verify *v, struct tec_error *err)
{
    json_t *file = tec_case_json(v, "malformed.json"), *one;
    json_t *files = json_object_get(file, "files");
    size_t i;
    json_array_foreach(files, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "file"));
        const char *expect = json_string_value(json_object_get(one, "expect"));
        judge(v, name ? name : "(no name)", expect ? expect : "(nothing)");
    }
    bool any = json_array_size(files) > 0;
    json_decref(file);
    return any ? TEC_OK : tec_fail(err, TEC_MALFORMED, "%s/malformed.json: cannot be read", v->dir);
}
