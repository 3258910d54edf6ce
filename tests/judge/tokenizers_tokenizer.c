/* tokenizers_tokenizer.c - judges a tokenizer case: encoding, decoding and streaming of its files
 * against what the published libraries gave. */
#include "tests/judge/tokenizers_case.h"

#include "base/text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* The files of one case. */
struct files {
    json_t *strings, *expected, *decode;
    const json_t *texts, *cases; /* members of strings.json and decode */
};

/* One tokenizer of the case, while it is judged. */
struct judged {
    struct tec_verify *v;
    const struct files *f;
    struct tec_tokenizer *t;
    const char *name; /* name of its file */
    bool model;       /* tokenizer.model: sp_* judges it, else hf_* */
};

static void report(const struct judged *j, const char *check, const struct tec_tally *tally)
{
    const char *name = tec_arena_printf(j->v->arena, "%s: %s", j->name, check);
    tec_tally_report(j->v, name ? name : check, tally);
}

static const json_t *expected(const struct judged *j, const char *key)
{
    return json_object_get(j->f->expected, key);
}

static bool encodes_to(const struct judged *j, const char *text, size_t n, struct tec_encode how,
                       const int *want, size_t n_want)
{
    int *ids;
    size_t n_ids;
    return tec_case_encode(j->v, j->t, text, n, how, &ids, &n_ids) == TEC_OK && want &&
           tec_case_same(ids, n_ids, want, n_want);
}

static bool decodes_to(const struct judged *j, const int *ids, size_t n, bool skip,
                       const json_t *want)
{
    char *text;
    size_t bytes;
    struct tec_error err;
    return ids && json_is_string(want) &&
           tec_tokenizer_decode(j->t, ids, n, skip, j->v->arena, &text, &bytes, &err) == TEC_OK &&
           bytes == json_string_length(want) && memcmp(text, json_string_value(want), bytes) == 0;
}

/* Judge the ids and texts of every string of strings.json. */
static void judge_strings(const struct judged *j)
{
    const json_t *ids = expected(j, j->model ? "sp_ids" : "hf_ids");
    const json_t *texts = expected(j, j->model ? "sp_decode" : "hf_decode");
    struct tec_tally encode = {0}, decode = {0};
    size_t i;
    const json_t *text;
    json_array_foreach(j->f->texts, i, text)
    {
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        size_t n;
        int *want = tec_case_ids(j->v, json_array_get(ids, i), &n);
        tec_tally_add(&encode, (int)i,
                      encodes_to(j, json_string_value(text), json_string_length(text),
                                 (struct tec_encode){.special = true}, want, n));
        tec_tally_add(&decode, (int)i, decodes_to(j, want, n, !j->model, json_array_get(texts, i)));
        tec_arena_rewind(j->v->arena, mark);
    }
    report(j, "ids", &encode);
    report(j, "texts", &decode);
}

/* The expected hf_literal of this string, or NULL when literal encoding changes nothing. */
static const json_t *literal_of(const struct judged *j, size_t index)
{
    size_t i;
    const json_t *pair;
    json_array_foreach(expected(j, "hf_literal"), i, pair)
    {
        if ((size_t)json_integer_value(json_array_get(pair, 0)) == index)
            return json_array_get(pair, 1);
    }
    return NULL;
}

/* The number of ids of `template_of_empty_string` that come before the text: those that hf_ids
 * starts with. */
static size_t template_before(const json_t *template, const json_t *ids)
{
    size_t n = 0;
    while (n < json_array_size(template) &&
           json_equal(json_array_get(template, n), json_array_get(ids, n)))
        n++;
    size_t after = json_array_size(template) - n, size = json_array_size(ids);
    return after <= size - n ? n : 0;
}

static void judge_literal(const struct judged *j)
{
    const json_t *template = expected(j, "template_of_empty_string"), *text;
    struct tec_tally tally = {0};
    size_t i, n_template = json_array_size(template);
    json_array_foreach(j->f->texts, i, text)
    {
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        const json_t *literal = literal_of(j, i), *ids = json_array_get(expected(j, "hf_ids"), i);
        size_t n, skip = 0;
        int *want = tec_case_ids(j->v, literal ? literal : ids, &n);
        if (want && !literal && n >= n_template) {
            skip = template_before(template, ids);
            n -= n_template;
        }
        tec_tally_add(&tally, (int)i,
                      encodes_to(j, json_string_value(text), json_string_length(text),
                                 (struct tec_encode){.literal = true}, want ? want + skip : NULL,
                                 n));
        tec_arena_rewind(j->v->arena, mark);
    }
    report(j, "literal ids", &tally);
}

static char *from_hex(struct tec_verify *v, const char *hex, size_t *n)
{
    *n = hex ? strlen(hex) / 2 : 0;
    char *bytes = TEC_NEW(v->arena, *n + 1, char);
    for (size_t i = 0; bytes && i < *n; i++) {
        unsigned value = 0;
        if (sscanf(hex + 2 * i, "%2x", &value) != 1)
            return NULL;
        bytes[i] = (char)value;
    }
    return bytes;
}

/* Judge invalid text: refusing it is as good as replacing it, but replaced text must encode as the
 * library does. */
static void judge_invalid(const struct judged *j)
{
    const json_t *list = expected(j, j->model ? "sp_invalid_utf8" : "hf_invalid_utf8"), *one;
    struct tec_tally tally = {0}, replaced = {0};
    struct tec_encode how = {.special = true};
    size_t i;
    json_array_foreach(list, i, one)
    {
        size_t n, n_ids, n_want;
        int *ids, *want = tec_case_ids(j->v, json_object_get(one, "ids"), &n_want);
        char *bytes = from_hex(j->v, json_string_value(json_object_get(one, "hex")), &n);
        enum tec_status status =
            bytes ? tec_case_encode(j->v, j->t, bytes, n, how, &ids, &n_ids) : TEC_IO;
        bool good = status == TEC_MALFORMED ||
                    (status == TEC_OK && want && tec_case_same(ids, n_ids, want, n_want));
        tec_tally_add(&tally, (int)i, good);
        const json_t *text = json_object_get(one, j->model ? "decode" : "replaced");
        tec_tally_add(&replaced, (int)i,
                      j->model ? decodes_to(j, want, n_want, false, text)
                               : encodes_to(j, json_string_value(text), json_string_length(text),
                                            how, want, n_want));
    }
    report(j, "invalid UTF-8", &tally);
    report(j, j->model ? "texts of invalid UTF-8" : "replaced invalid UTF-8", &replaced);
}

/* Join the pieces of utf8_stream to one text, without the leading space if the family strips it. */
static json_t *join_stream(const json_t *stream, const json_t *hf)
{
    size_t i, n = 0, total = 0;
    const json_t *piece;
    json_array_foreach(stream, i, piece) total += json_string_length(piece);
    char *text = malloc(total + 1);
    if (!text)
        return NULL;
    json_array_foreach(stream, i, piece)
    {
        memcpy(text + n, json_string_value(piece), json_string_length(piece));
        n += json_string_length(piece);
    }
    bool strip = n && text[0] == ' ' && json_string_value(hf)[0] != ' ';
    json_t *joined = json_stringn(text + strip, n - strip);
    free(text);
    return joined;
}

static bool is_broken(const json_t *hf)
{
    const char *text = json_string_value(hf);
    return text && memmem(text, json_string_length(hf), "\xEF\xBF\xBD", 3);
}

/* Without special tokens, broken bytes must decode like the other ids alone. */
static bool skips_special(const struct judged *j, const int *ids, size_t n)
{
    int *rest = TEC_NEW(j->v->arena, n, int);
    size_t n_rest = 0, bytes_a, bytes_b;
    char *a, *b;
    struct tec_error err;
    for (size_t i = 0; rest && i < n; i++)
        if (!tec_tokenizer_special(j->t, ids[i]))
            rest[n_rest++] = ids[i];
    return rest &&
           tec_tokenizer_decode(j->t, ids, n, true, j->v->arena, &a, &bytes_a, &err) == TEC_OK &&
           tec_tokenizer_decode(j->t, rest, n_rest, false, j->v->arena, &b, &bytes_b, &err) ==
               TEC_OK &&
           bytes_a == bytes_b && memcmp(a, b, bytes_a) == 0;
}

/* Judge the text of one sequence. Broken bytes in a family with byte fallback (it has an "sp") may
 * also come out as they stream. */
static bool decodes_case(const struct judged *j, const json_t *one, const int *ids, size_t n)
{
    const json_t *hf = json_object_get(one, "hf"), *skip = json_object_get(one, "hf_skip");
    const json_t *stream = json_object_get(one, "utf8_stream");
    if (j->model)
        return decodes_to(j, ids, n, false, json_object_get(one, "sp"));
    bool lenient = json_object_get(one, "sp") && stream && is_broken(hf);
    json_t *joined = lenient ? join_stream(stream, hf) : NULL;
    bool good =
        decodes_to(j, ids, n, false, hf) || (joined && decodes_to(j, ids, n, false, joined));
    json_decref(joined);
    skip = skip ? skip : hf;
    return good && (decodes_to(j, ids, n, true, skip) || (lenient && skips_special(j, ids, n)));
}

/* Whether a step emitted what it must: a piece of utf8_stream, else of hf_stream (null means
 * nothing). */
static bool emits(const json_t *want, const char *got, size_t n, bool strip)
{
    const char *text = json_is_string(want) ? json_string_value(want) : "";
    size_t n_want = json_is_string(want) ? json_string_length(want) : 0;
    if (strip && n_want && text[0] == ' ') {
        text++;
        n_want--;
    }
    return n == n_want && memcmp(text, got, n) == 0;
}

/* Judge a stream token by token: it never emits half a character, its steps are those of the case,
 * and together they are the text. Whether a broken byte is replaced at once or with the next one is
 * free. */
static bool streams_case(const struct judged *j, const json_t *one, const int *ids, size_t n)
{
    const json_t *utf8 = json_object_get(one, "utf8_stream");
    const json_t *steps = j->model ? NULL : utf8 ? utf8 : json_object_get(one, "hf_stream");
    char out[TEC_DETOKENIZER_BYTES], *whole, *text = TEC_NEW(j->v->arena, 1 << 16, char);
    size_t bytes, total = 0;
    struct tec_detokenizer d;
    struct tec_error err;
    bool good = text != NULL, broken = is_broken(json_object_get(one, "hf"));
    if (!good || tec_tokenizer_decode(j->t, ids, n, false, j->v->arena, &whole, &bytes, &err))
        return false;
    tec_detokenizer_init(&d, j->t, false);
    for (size_t i = 0; i <= n; i++) {
        size_t got = i < n ? tec_detokenizer_push(&d, ids[i], out, sizeof out)
                           : tec_detokenizer_flush(&d, out, sizeof out);
        good =
            good && got <= sizeof out && total + got <= 1 << 16 && tec_utf8_check(out, got) == got;
        if (!good)
            return false;
        if (json_is_array(steps) && (i < n || utf8) && !broken)
            good = emits(json_array_get(steps, i), out, got, false) ||
                   (total == 0 && emits(json_array_get(steps, i), out, got, true));
        memcpy(text + total, out, got);
        total += got;
    }
    return good && total == bytes && memcmp(text, whole, total) == 0;
}

static void judge_decode(const struct judged *j)
{
    struct tec_tally texts = {0}, streams = {0};
    size_t i;
    const json_t *one;
    json_array_foreach(j->f->cases, i, one)
    {
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        size_t n;
        int *ids = tec_case_ids(j->v, json_object_get(one, "ids"), &n);
        if (!j->model || json_object_get(one, "sp"))
            tec_tally_add(&texts, (int)i, ids && decodes_case(j, one, ids, n));
        tec_tally_add(&streams, (int)i, ids && streams_case(j, one, ids, n));
        tec_arena_rewind(j->v->arena, mark);
    }
    report(j, "sequences", &texts);
    report(j, "streams", &streams);
}

static void judge_size(const struct judged *j)
{
    struct tec_tally tally = {0}, special = {0};
    const json_t *want = expected(j, "sp_bos_eos_pad_unk");
    int got[4] = {tec_tokenizer_bos(j->t), tec_tokenizer_eos(j->t), tec_tokenizer_pad(j->t),
                  tec_tokenizer_unk(j->t)};
    if (!j->model) {
        tec_tally_add(&tally, 0,
                      tec_tokenizer_size(j->t) == json_integer_value(expected(j, "vocab_size")));
        report(j, "vocabulary size", &tally);
        return;
    }
    for (size_t i = 0; i < 4; i++)
        tec_tally_add(&special, (int)i,
                      json_is_integer(json_array_get(want, i)) &&
                          got[i] == json_integer_value(json_array_get(want, i)));
    report(j, "bos, eos, pad, unk", &special);
}

/* The two files of a vocabulary must differ exactly where the library's do. */
static void judge_differences(struct tec_verify *v, const struct files *f,
                              const struct tec_tokenizer *json, const struct tec_tokenizer *model)
{
    const json_t *want = json_object_get(f->expected, "sp_differs_from_hf"), *text;
    struct tec_tally tally = {0};
    size_t i, next = 0;
    json_array_foreach(f->texts, i, text)
    {
        int *a, *b;
        size_t n_a, n_b, n = json_string_length(text);
        const char *s = json_string_value(text);
        struct tec_arena_mark mark = tec_arena_mark(v->arena);
        bool read = tec_case_encode(v, json, s, n, (struct tec_encode){0}, &a, &n_a) == TEC_OK &&
                    tec_case_encode(v, model, s, n, (struct tec_encode){0}, &b, &n_b) == TEC_OK;
        bool listed = next < json_array_size(want) &&
                      (size_t)json_integer_value(json_array_get(want, next)) == i;
        next += listed;
        tec_tally_add(&tally, (int)i, read && tec_case_same(a, n_a, b, n_b) == !listed);
        tec_arena_rewind(v->arena, mark);
    }
    tec_tally_report(v, "where tokenizer.model differs from tokenizer.json", &tally);
}

/* For files that know no added tokens, encode strings without them: all ids must be below
 * `size`. */
static void judge_plain(const struct judged *j)
{
    struct tec_tally tally = {0};
    size_t i;
    const json_t *text;
    int size = tec_tokenizer_size(j->t);
    json_array_foreach(j->f->texts, i, text)
    {
        struct tec_arena_mark mark = tec_arena_mark(j->v->arena);
        size_t n;
        int *want = tec_case_ids(j->v, json_array_get(expected(j, "hf_ids"), i), &n);
        bool plain = want != NULL;
        for (size_t k = 0; plain && k < n; k++)
            plain = want[k] < size;
        if (plain)
            tec_tally_add(&tally, (int)i,
                          encodes_to(j, json_string_value(text), json_string_length(text),
                                     (struct tec_encode){.special = true}, want, n));
        tec_arena_rewind(j->v->arena, mark);
    }
    report(j, "ids", &tally);
}

static void judge_one(const struct judged *j)
{
    if (strcmp(j->name, "vocab.json") == 0) {
        judge_plain(j);
        return;
    }
    judge_size(j);
    judge_strings(j);
    judge_invalid(j);
    judge_decode(j);
    if (!j->model)
        judge_literal(j);
}

/* Open a file of the case; a missing file gives no tokenizer, unless the case must have it. */
static struct tec_tokenizer *open_one(struct tec_verify *v, const char *name, bool must)
{
    struct tec_tokenizer *t = NULL;
    struct tec_error err;
    const char *path = tec_case_path(v, name);
    if (!path || (!must && !tec_case_has(v, name)))
        return NULL;
    if (tec_tokenizer_open(&t, path, v->heap, &err) == TEC_OK)
        return t;
    tec_verify_cannot(v, name, &err);
    return NULL;
}

static void judge_files(struct tec_verify *v, const struct files *f)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "vocab.json",
                                        "vocab.txt", "tokenizer_roberta_processing.json"};
    struct tec_tokenizer *opened[5];
    for (int i = 0; i < 5; i++) {
        bool model = i == 1;
        bool must = i == 0 || (model && json_object_get(f->expected, "sp_ids"));
        opened[i] = open_one(v, names[i], must);
        struct judged j = {v, f, opened[i], names[i], model};
        if (opened[i])
            judge_one(&j);
    }
    if (opened[0] && opened[1])
        judge_differences(v, f, opened[0], opened[1]);
    for (int i = 0; i < 5; i++)
        tec_tokenizer_close(opened[i]);
}

enum tec_status tec_verify_tokenizers_tokenizer(struct tec_verify *v, struct tec_error *err)
{
    struct files f = {.strings = tec_case_json(v, "../strings.json"),
                      .expected = tec_case_json(v, "expected.json"),
                      .decode = tec_case_json(v, "decode.json")};
    f.texts = json_object_get(f.strings, "strings");
    f.cases = json_object_get(f.decode, "cases");
    enum tec_status status = TEC_OK;
    if (f.expected && json_is_array(f.texts) && json_is_array(f.cases))
        judge_files(v, &f);
    else
        status =
            tec_fail(err, TEC_MALFORMED,
                     "%s: expected.json, decode.json or ../strings.json cannot be read", v->dir);
    json_decref(f.strings);
    json_decref(f.expected);
    json_decref(f.decode);
    return status;
}
