/* tokenizer.c - tokenizers against their golden cases, every code point, and rules of their own. */
#include "base/text/tokenizer.h"

#include "base/text/parts.h"
#include "base/text/unicode.h"
#include "base/text/utf8.h"
#include "graph/transform/prompt.h"
#include "graph/transform/template.h"
#include "tests/box.h"
#include "tests/judge/verify.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define GOLDEN "tests/golden/tokenizers"

static void judge(const char *dir)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    tec_arena_init(&arena, &heap);
    struct tec_verify v = {.dtype = "f32", .heap = &heap, .arena = &arena};
    CHECK_INT(tec_verify_case(&v, dir, &err), ==, TEC_OK);
    CHECK_INT(v.checks, >, 0);
    CHECK_INT(v.failed, ==, 0);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(golden_byte_fallback)
{
    judge(GOLDEN "/gemma_like");
    judge(GOLDEN "/llama_like");
}

TEST(golden_byte_level)
{
    judge(GOLDEN "/qwen_like");
}

TEST(golden_wordpiece)
{
    judge(GOLDEN "/bert_like");
    judge(GOLDEN "/mpnet_like");
}

TEST(golden_unigram)
{
    judge(GOLDEN "/t5_like");
}

TEST(golden_prompts)
{
    judge(GOLDEN);
}

TEST(golden_malformed)
{
    judge(GOLDEN "/malformed");
}

/* One byte a code point: 1 where a range of the list has it. */
static unsigned char *ranges(const json_t *file, const char *name)
{
    unsigned char *in = calloc(0x110000, 1);
    size_t i;
    const json_t *range;
    json_array_foreach(json_object_get(file, name), i, range)
    {
        json_int_t last = json_integer_value(json_array_get(range, 1));
        for (json_int_t c = json_integer_value(json_array_get(range, 0)); c <= last; c++)
            in[c] = 1;
    }
    return in;
}

TEST(every_code_point_has_its_classes)
{
    static const char *const names[] = {"regex_L",
                                        "regex_N",
                                        "regex_s",
                                        "bert_removed",
                                        "bert_to_space",
                                        "bert_padded_cjk",
                                        "bert_split_as_punctuation"};
    json_t *file = json_load_file(GOLDEN "/codepoints.json", 0, NULL);
    REQUIRE(file);
    for (unsigned bit = 0; bit < 7; bit++) {
        unsigned char *in = ranges(file, names[bit]);
        int wrong = 0;
        for (uint32_t code = 0; code < 0x110000; code++)
            wrong += (tec_unicode_class(code) >> bit & 1) != in[code];
        CHECK_INT(wrong, ==, 0);
        free(in);
    }
    json_decref(file);
}

/* Wanted text of each code point; NULL where it stays. */
static const char **changes(const json_t *file, const char *name)
{
    const char **to = calloc(0x110000, sizeof *to);
    size_t i;
    const json_t *pair;
    json_array_foreach(json_object_get(file, name), i, pair)
        to[json_integer_value(json_array_get(pair, 0))] =
            json_string_value(json_array_get(pair, 1));
    return to;
}

TEST(every_code_point_composes_as_the_reference)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    json_t *file = json_load_file(GOLDEN "/codepoints.json", 0, NULL);
    REQUIRE(file);
    tec_arena_init(&arena, &heap);
    const char **to = changes(file, "nfc_changed");
    int wrong = 0;
    for (uint32_t code = 1; code < 0x110000; code++) {
        char one[5] = {0};
        struct tec_arena_mark mark = tec_arena_mark(&arena);
        struct tec_bytes out;
        if (code >= 0xD800 && code < 0xE000)
            continue;
        size_t n = tec_utf8_put(one, code);
        tec_bytes_init(&out, &arena, 0);
        tec_unicode_form(&out, one, n, TEC_FORM_COMPOSED);
        const char *want = to[code] ? to[code] : one;
        wrong += out.failed || out.n != strlen(want) || memcmp(out.at, want, out.n) != 0;
        tec_arena_rewind(&arena, mark);
    }
    CHECK_INT(wrong, ==, 0);
    free(to);
    json_decref(file);
    tec_arena_finish(&arena);
}

/* The reference's tables are Unicode 9's: to them a mark that came later is a letter. */
TEST(late_marks_let_no_mark_pass)
{
    static const char *const texts[][2] = {{"a\u1abf\u0301", "a\u1abf\u0301"},
                                           {"a\u0327\u0301", "\u00e1\u0327"},
                                           {"a\u0301\u0898\u0327", "\u00e1\u0898\u0327"},
                                           {"\u1abfa\u0301", "\u1abf\u00e1"}};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tec_bytes out;
        tec_bytes_init(&out, &arena, 0);
        tec_unicode_form(&out, texts[i][0], strlen(texts[i][0]), TEC_FORM_COMPOSED);
        CHECK(!out.failed && out.n == strlen(texts[i][1]) &&
              memcmp(out.at, texts[i][1], out.n) == 0);
    }
    tec_arena_finish(&arena);
}

TEST(every_code_point_is_bare_as_the_reference)
{
    json_t *file = json_load_file(GOLDEN "/codepoints.json", 0, NULL);
    REQUIRE(file);
    const char **to = changes(file, "bert_mapped");
    int wrong = 0;
    for (uint32_t code = 0; code < 0x110000; code++) {
        const char *got = tec_unicode_bare(code);
        wrong += got && to[code] ? strcmp(got, to[code]) != 0 : got != to[code];
    }
    CHECK_INT(wrong, ==, 0);
    free(to);
    json_decref(file);
}

TEST(marks_are_ordered_in_linear_time_and_stably)
{
    static const char unit[] = "\u0301\u0323\u0300"; /* classes 230, 220, 230 */
    enum { UNITS = 130000, N = 6 * UNITS };
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    char *text = malloc(N);
    REQUIRE(text);
    for (size_t i = 0; i < N; i += 6)
        memcpy(text + i, unit, 6);
    CHECK(tec_unicode_order(text, N, &arena));
    CHECK(memcmp(text, "\u0323\u0323", 4) == 0);
    CHECK(memcmp(text + N / 3, "\u0301\u0300\u0301", 6) == 0);
    CHECK(memcmp(text + N - 4, "\u0301\u0300", 4) == 0);
    CHECK_INT(heap.peak, <, N + 65536);
    free(text);
    tec_arena_finish(&arena);
}

/* What a form takes is bounded by the limit of its output, not by the text. */
TEST(forms_stop_where_their_output_is_full)
{
    enum { BYTES = 600000, LIMIT = 4096 };
    static const struct {
        const char *unit;
        unsigned form;
    } cases[] = {
        {"\ufdfa", TEC_FORM_COMPATIBLE},
        {"\ufdfa", TEC_FORM_COMPATIBLE | TEC_FORM_COMPOSED},
        {"\uac01", 0},
        {"\u0344", TEC_FORM_COMPOSED},
        {"\u0301\u0323", 0},
        {"\u0301\u0323", TEC_FORM_COMPATIBLE | TEC_FORM_COMPOSED},
    };
    char *text = malloc(BYTES);
    REQUIRE(text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tec_heap heap = {0};
        struct tec_arena arena;
        struct tec_bytes out;
        size_t unit = strlen(cases[i].unit), bytes = BYTES / unit * unit;
        for (size_t at = 0; at < bytes; at += unit)
            memcpy(text + at, cases[i].unit, unit);
        tec_arena_init(&arena, &heap);
        tec_bytes_init(&out, &arena, LIMIT);
        tec_unicode_form(&out, text, bytes, cases[i].form);
        CHECK(out.full && !out.failed);
        CHECK_INT(heap.peak, <, 16 * LIMIT);
        tec_arena_finish(&arena);
    }
    free(text);
}

/* A text fits if what it composes to does, and not its parts. */
TEST(the_limit_of_a_form_is_that_of_what_it_makes)
{
    static const char text[] = "ab\u03b1\u0313\u0300\u0345", whole[] = "ab\u1f82";
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    for (size_t limit = 3; limit < sizeof text; limit++) {
        struct tec_bytes out;
        tec_bytes_init(&out, &arena, limit);
        tec_unicode_form(&out, text, sizeof text - 1, TEC_FORM_COMPOSED);
        CHECK(out.full == (limit < sizeof whole - 1));
        CHECK(out.full || (out.n == sizeof whole - 1 && memcmp(out.at, whole, out.n) == 0));
    }
    tec_arena_finish(&arena);
}

TEST(utf8_is_strict)
{
    static const char *const bad[] = {"\x80",         "\xC0\x80",         "\xC1\xBF",
                                      "\xE0\x80\x80", "\xED\xA0\x80",     "\xF0\x80\x80\x80",
                                      "\xF5\x80\x80", "\xF4\x90\x80\x80", "\xE4\xBD"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_INT(tec_utf8_check(bad[i], strlen(bad[i])), ==, 0);
    for (uint32_t code = 0; code < 0x110000; code++) {
        char s[4];
        size_t bytes, n = tec_utf8_put(s, code);
        bool surrogate = code >= 0xD800 && code < 0xE000;
        REQUIRE((tec_utf8_check(s, n) == n) != surrogate);
        if (!surrogate)
            REQUIRE(tec_utf8_get(s, &bytes) == code && bytes == n);
    }
}

TEST(printable_bytes_are_a_bijection)
{
    bool seen[0x144] = {false};
    for (int byte = 0; byte < 256; byte++) {
        uint32_t code = tec_tokenizer_printable(byte);
        REQUIRE(code < 0x144);
        CHECK(!seen[code]);
        seen[code] = true;
        CHECK_INT(tec_tokenizer_byte(code), ==, byte);
    }
    CHECK_INT(tec_tokenizer_printable(' '), ==, 0x120);
    CHECK_INT(tec_tokenizer_printable('\n'), ==, 0x10A);
    CHECK_INT(tec_tokenizer_printable(0xAD), ==, 0x143);
    CHECK_INT(tec_tokenizer_byte(0x144), ==, -1);
    CHECK_INT(tec_tokenizer_byte(' '), ==, -1);
}

/* Words of `text` under a pattern, joined by '|'. */
static const char *words(const struct tec_pattern *p, const char *text)
{
    static char out[256];
    size_t n = strlen(text), to = 0;
    for (size_t at = 0; at < n;) {
        size_t word = tec_pattern_word(p, text + at, n - at);
        if (to)
            out[to++] = '|';
        memcpy(out + to, text + at, word);
        to += word;
        at += word;
    }
    out[to] = '\0';
    return out;
}

TEST(patterns_cut_as_they_read)
{
    const char three[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    const struct tec_pattern *plain = tec_pattern_plain(), *one = tec_pattern_digits();
    const struct tec_pattern *many = tec_pattern_find(three, sizeof three - 1);
    REQUIRE(many);
    CHECK(!tec_pattern_find("\\w+", 3));
    CHECK_STR(words(plain, "I'll go,  12345 x\n\n y"), "I|'ll| go|,| | 12345| x|\n\n| y");
    CHECK_STR(words(plain, "I'LL \n"), "I|'|LL| \n");
    CHECK_STR(words(one, "I'LL go,  123 x\n\n y  "), "I|'LL| go|,| | |1|2|3| x|\n\n| y|  ");
    CHECK_STR(words(one, "a.b ?!\n\nc \t\nd"), "a|.b| ?!\n\n|c| \t\n|d");
    CHECK_STR(words(many, "1234567 89"), "123|456|7| |89");
    CHECK_STR(words(one, "it'\xC5\xBF x"), "it|'\xC5\xBF| x");
}

static struct tec_tokenizer *open_golden(struct tec_heap *heap, const char *name)
{
    struct tec_tokenizer *t = NULL;
    struct tec_error err;
    char path[256];
    snprintf(path, sizeof path, GOLDEN "/%s", name);
    if (tec_tokenizer_open(&t, path, heap, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    return t;
}

TEST(directories_and_kinds)
{
    static const char *const kinds[][2] = {
        {"gemma_like/tokenizer.model", "bpe (sentencepiece)"},
        {"gemma_like", "bpe"},
        {"t5_like/tokenizer.model", "unigram (sentencepiece)"},
        {"t5_like", "unigram"},
        {"qwen_like", "byte-level bpe"},
        {"qwen_like/vocab.json", "byte-level bpe"},
        {"bert_like", "wordpiece"},
        {"bert_like/vocab.txt", "wordpiece"},
    };
    struct tec_heap heap = {0};
    struct tec_tokenizer *t;
    struct tec_error err;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        t = open_golden(&heap, kinds[i][0]);
        REQUIRE(t);
        CHECK_STR(tec_tokenizer_kind(t), kinds[i][1]);
        tec_tokenizer_close(t);
    }
    CHECK_INT(tec_tokenizer_open(&t, GOLDEN "/none", &heap, &err), ==, TEC_NOT_FOUND);
    CHECK_INT(tec_tokenizer_open(&t, "base/text", &heap, &err), ==, TEC_NOT_FOUND);
    CHECK_INT(tec_tokenizer_open(&t, "tests/tap.h", &heap, &err), ==, TEC_UNSUPPORTED);
    struct box b;
    box_make(&b);
    box_put(&b, "merges.txt", "#version: 0.2\n");
    CHECK_INT(tec_tokenizer_open(&t, b.dir, &heap, &err), ==, TEC_NOT_FOUND);
    CHECK(strstr(err.message, "vocab.json is missing"));
    CHECK_INT(tec_tokenizer_open(&t, b.path, &heap, &err), ==, TEC_NOT_FOUND);
    CHECK(strstr(err.message, "vocab.json is missing"));
    box_remove(&b);
    tec_tokenizer_close(NULL);
    CHECK_INT(heap.live, ==, 0);
}

TEST(names_of_special_tokens)
{
    struct tec_heap heap = {0};
    struct tec_tokenizer *t = open_golden(&heap, "mpnet_like");
    REQUIRE(t);
    CHECK_INT(tec_tokenizer_bos(t), ==, 0);
    CHECK_INT(tec_tokenizer_eos(t), ==, 2);
    CHECK_INT(tec_tokenizer_pad(t), ==, 1);
    CHECK_INT(tec_tokenizer_unk(t), ==, 14);
    CHECK(tec_tokenizer_special(t, 0));
    CHECK(!tec_tokenizer_special(t, 100));
    CHECK(!tec_tokenizer_special(t, -1));
    CHECK_INT(tec_tokenizer_id(t, "<mask>", 6), ==, 1204);
    CHECK_INT(tec_tokenizer_id(t, "no such piece", 13), ==, -1);
    size_t n;
    CHECK_STR(tec_tokenizer_piece(t, 1204, &n), "<mask>");
    CHECK_INT(n, ==, 6);
    CHECK(!tec_tokenizer_piece(t, 1205, &n));
    tec_tokenizer_close(t);
}

TEST(encode_counts_beyond_capacity_and_names_bad_bytes)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    struct tec_tokenizer *t = open_golden(&heap, "gemma_like/tokenizer.model");
    struct tec_encode how = {0};
    REQUIRE(t);
    tec_arena_init(&arena, &heap);
    int64_t before = heap.live;
    int ids[4] = {-7, -7, -7, -7};
    size_t n = 0;
    CHECK_INT(tec_tokenizer_encode(t, "wash the red bottle", 19, how, ids, 2, &n, &arena, &err), ==,
              TEC_OK);
    CHECK_INT(n, ==, 4);
    CHECK_INT(ids[1], ==, 342);
    CHECK_INT(ids[2], ==, -7);
    CHECK_INT(tec_tokenizer_encode(t, NULL, 0, how, NULL, 0, &n, &arena, &err), ==, TEC_OK);
    CHECK_INT(n, ==, 0);
    CHECK_INT(tec_tokenizer_encode(t, "abc\xFFz", 5, how, ids, 4, &n, &arena, &err), ==,
              TEC_MALFORMED);
    CHECK(strstr(err.message, "0xFF at position 3"));
    CHECK_INT(heap.live, ==, before);
    tec_tokenizer_close(t);
    CHECK_INT(heap.live, ==, 0);
}

TEST(detokenizer_keeps_its_state_without_room)
{
    struct tec_heap heap = {0};
    struct tec_detokenizer d;
    struct tec_tokenizer *t = open_golden(&heap, "gemma_like/tokenizer.model");
    REQUIRE(t);
    char out[16];
    int first = tec_tokenizer_id(t, "<0xC3>", 6), second = tec_tokenizer_id(t, "<0xA9>", 6);
    tec_detokenizer_init(&d, t, false);
    CHECK_INT(tec_detokenizer_push(&d, first, out, sizeof out), ==, 0);
    CHECK_INT(tec_detokenizer_push(&d, second, out, 1), ==, 2);
    CHECK_INT(d.n_held, ==, 1);
    CHECK_INT(tec_detokenizer_push(&d, second, out, 2), ==, 2);
    CHECK(memcmp(out, "\xC3\xA9", 2) == 0);
    CHECK_INT(tec_detokenizer_push(&d, first, out, sizeof out), ==, 0);
    CHECK_INT(tec_detokenizer_push(&d, -1, out, sizeof out), ==, 0);
    CHECK_INT(tec_detokenizer_push(&d, 1 << 30, out, sizeof out), ==, 0);
    CHECK_INT(tec_detokenizer_flush(&d, out, sizeof out), ==, 3);
    CHECK_INT(tec_detokenizer_flush(&d, out, sizeof out), ==, 0);
    tec_tokenizer_close(t);
}

/* Every allocation of open, encode, decode fails once: no crash, no leak, and that status. */
TEST(no_memory_is_reported)
{
    static const char *const names[] = {"gemma_like/tokenizer.model", "t5_like/tokenizer.model",
                                        "llama_like", "bert_like", "t5_like"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int64_t at = 1;; at++) {
            struct tec_heap heap = {.fail_at = at};
            struct tec_arena arena;
            struct tec_tokenizer *t = NULL;
            struct tec_error err;
            char path[128], *text;
            int ids[64];
            size_t n = 0, bytes;
            snprintf(path, sizeof path, GOLDEN "/%s", names[i]);
            tec_arena_init(&arena, &heap);
            enum tec_status status = tec_tokenizer_open(&t, path, &heap, &err);
            if (status == TEC_OK)
                status = tec_tokenizer_encode(t, "wash the red bottle", 19, (struct tec_encode){0},
                                              ids, 64, &n, &arena, &err);
            if (status == TEC_OK)
                status = tec_tokenizer_decode(t, ids, n, false, &arena, &text, &bytes, &err);
            tec_arena_finish(&arena);
            tec_tokenizer_close(t);
            CHECK_INT(heap.live, ==, 0);
            if (status == TEC_OK)
                break;
            REQUIRE(status == TEC_NO_MEMORY);
        }
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* the machine may be busy */
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The list of words has a block of its own, which is full: the heap is asked a few times for the
 * whole text all the same, not for each word. */
TEST(words_ask_the_heap_for_nothing)
{
    enum { BYTES = 400000 };
    static const char *const names[] = {"gemma_like/tokenizer.model", "qwen_like", "t5_like"};
    struct tec_heap heap = {0}, own = {0};
    struct tec_error err;
    char *text = malloc(BYTES);
    REQUIRE(text);
    for (int i = 0; i < BYTES; i++)
        text[i] = "the cup is on a shelf now. "[i % 27];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tec_tokenizer *t = open_golden(&own, names[i]);
        REQUIRE(t);
        struct tec_arena arena;
        size_t n;
        int64_t before = heap.calls;
        tec_arena_init(&arena, &heap);
        CHECK_INT(
            tec_tokenizer_encode(t, text, BYTES, (struct tec_encode){0}, NULL, 0, &n, &arena, &err),
            ==, TEC_OK);
        CHECK(n > BYTES / 8);
        CHECK_INT(heap.calls - before, <=, 60);
        tec_arena_finish(&arena);
        tec_tokenizer_close(t);
    }
    free(text);
    CHECK_INT(heap.live, ==, 0);
    CHECK_INT(own.live, ==, 0);
}

/* Texts that make naive engines quadratic. Two seconds is generous for 400 kB, even sanitized. */
TEST(long_runs_take_linear_time)
{
    static const char *const names[] = {"gemma_like/tokenizer.model",
                                        "gemma_like",
                                        "llama_like",
                                        "qwen_like",
                                        "bert_like",
                                        "t5_like",
                                        "t5_like/tokenizer.model"};
    static const char *const units[] = {
        " ", "\n", "a", "'", "\xCC\x81\xCC\xA3", "<", " \t", "\xF0\x9F\x98\x80"};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    size_t size = 400000, n;
    char *text = malloc(size);
    REQUIRE(text);
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tec_tokenizer *t = open_golden(&heap, names[i]);
        REQUIRE(t);
        for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
            size_t unit = strlen(units[u]), bytes = size / unit * unit;
            for (size_t at = 0; at < bytes; at += unit)
                memcpy(text + at, units[u], unit);
            double start = seconds();
            CHECK_INT(tec_tokenizer_encode(t, text, bytes, (struct tec_encode){0}, NULL, 0, &n,
                                           &arena, &err),
                      ==, TEC_OK);
            CHECK(seconds() - start < 2.0);
        }
        tec_tokenizer_close(t);
    }
    free(text);
    tec_arena_finish(&arena);
}

/* piece, score, type as a ModelProto field. */
static size_t put_piece(char *out, const char *text, float score, int type)
{
    size_t n = strlen(text);
    out[0] = 0x0A;
    out[1] = (char)(n + 9);
    out[2] = 0x0A;
    out[3] = (char)n;
    for (size_t i = 0; i < n; i++)
        out[4 + i] = text[i];
    out[4 + n] = 0x15;
    memcpy(out + 5 + n, &score, 4);
    out[9 + n] = 0x18;
    out[10 + n] = (char)type;
    return n + 11;
}

/* An unused piece takes part in merges and is cut again at the end. */
TEST(unused_pieces_are_cut_again)
{
    char file[512];
    size_t n = 0, count, length;
    n += put_piece(file + n, "<unk>", 0.0F, 2);
    n += put_piece(file + n, "a", -5.0F, 1);
    n += put_piece(file + n, "b", -6.0F, 1);
    n += put_piece(file + n, "ab", -1.0F, 5);
    n += put_piece(file + n, "abab", -2.0F, 5);
    n += put_piece(file + n, "ababa", -3.0F, 1);
    static const char rest[] = {0x12, 2, 0x18, 2, 0x1A, 4, 0x18, 0, 0x20, 0}; /* bpe, no prefix */
    memcpy(file + n, rest, sizeof rest);
    n += sizeof rest;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_tokenizer *t;
    struct tec_error err;
    int ids[8];
    char *text;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_tokenizer_open_bytes(&t, file, n, TEC_TEXT_MODEL, &heap, &err) == TEC_OK);
    REQUIRE(tec_tokenizer_encode(t, "ababa", 5, (struct tec_encode){0}, ids, 8, &count, &arena,
                                 &err) == TEC_OK);
    CHECK_INT(count, ==, 1);
    CHECK_INT(ids[0], ==, 5);
    REQUIRE(tec_tokenizer_encode(t, "ababxxb", 7, (struct tec_encode){0}, ids, 8, &count, &arena,
                                 &err) == TEC_OK);
    static const int cut[] = {1, 2, 1, 2, 0, 2};
    CHECK_INT(count, ==, 6);
    CHECK(memcmp(ids, cut, sizeof cut) == 0);
    REQUIRE(tec_tokenizer_decode(t, cut, 6, false, &arena, &text, &length, &err) == TEC_OK);
    CHECK_STR(text, "abab \xE2\x81\x87 b");
    tec_arena_finish(&arena);
    tec_tokenizer_close(t);
    CHECK_INT(heap.live, ==, 0);
}

/* What SentencePiece 0.2.3 does: a user-defined piece of 2 bytes has score 0.1, and the unknown is
 * shown although it is no text of the model. */
TEST(user_defined_pieces_are_taken_as_sentencepiece_does)
{
    char file[512];
    size_t n = 0, count, length;
    n += put_piece(file + n, "<unk>", 0.0F, 2);
    n += put_piece(file + n, "a", -1.0F, 1);
    n += put_piece(file + n, "b", -1.0F, 1);
    n += put_piece(file + n, "c", -1.0F, 1);
    n += put_piece(file + n, "ab", 0.0F, 4);
    n += put_piece(file + n, "abc", -0.95F, 1);
    n += put_piece(file + n, "abb", -0.85F, 1);
    /* unigram; no prefix, spaces stay */
    static const char rest[] = {0x12, 2, 0x18, 1, 0x1A, 4, 0x18, 0, 0x20, 0};
    memcpy(file + n, rest, sizeof rest);
    n += sizeof rest;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_tokenizer *t;
    struct tec_error err;
    int ids[8];
    char *text;
    static const int cut[] = {4, 3, 6, 4};
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_tokenizer_open_bytes(&t, file, n, TEC_TEXT_MODEL, &heap, &err) == TEC_OK);
    REQUIRE(tec_tokenizer_encode(t, "abcabbab", 8, (struct tec_encode){0}, ids, 8, &count, &arena,
                                 &err) == TEC_OK);
    CHECK_INT(count, ==, 4);
    CHECK(memcmp(ids, cut, sizeof cut) == 0);
    static const int unknown[] = {0, 4};
    REQUIRE(tec_tokenizer_decode(t, unknown, 2, true, &arena, &text, &length, &err) == TEC_OK);
    CHECK_STR(text, " \xE2\x81\x87 ab");
    tec_arena_finish(&arena);
    tec_tokenizer_close(t);
    CHECK_INT(heap.live, ==, 0);
}

/* Encode with the tokenizer of this tokenizer.json. */
static void check_ids(const char *file, const char *text, const int *expected, size_t n_expected)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_tokenizer *t;
    struct tec_error err;
    int ids[64];
    size_t n;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_tokenizer_open_bytes(&t, file, strlen(file), TEC_TEXT_JSON, &heap, &err) == TEC_OK);
    REQUIRE(tec_tokenizer_encode(t, text, strlen(text), (struct tec_encode){0}, ids, 64, &n, &arena,
                                 &err) == TEC_OK);
    CHECK_INT(n, ==, n_expected);
    CHECK(n == n_expected && memcmp(ids, expected, n * sizeof *ids) == 0);
    tec_arena_finish(&arena);
    tec_tokenizer_close(t);
    CHECK_INT(heap.live, ==, 0);
}

/* Byte E9 is written as the character that bytes C3 A9 encode. Ids are those of the tokenizers
 * package 0.22.2. */
TEST(whole_words_of_bytes_are_looked_for_as_they_are_written)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"post_processor\":null,"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"trim_offsets\":true,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
        "\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{\"\u00C3\":0,"
        "\"\u00A9\":1,\"\u00E9\":2,\"\u0120\":3,\"a\":4,\"\u0120\u00C3\u00A9\":5},"
        "\"merges\":[]}}";
    static const int expected[] = {0, 1, 5};
    check_ids(file, "\u00E9 \u00E9", expected, 3);
}

/* A file whose pre-tokenizers and model are these. */
static void check_refused(const char *steps, const char *model, const char *why)
{
    struct tec_tokenizer *t;
    struct tec_heap heap = {0};
    struct tec_error err;
    char file[512];
    snprintf(file, sizeof file,
             "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Sequence\","
             "\"pretokenizers\":[%s]},\"model\":{\"vocab\":{\"a\":0},\"unk_token\":\"a\","
             "\"merges\":[],%s}}",
             steps, model);
    enum tec_status status =
        tec_tokenizer_open_bytes(&t, file, strlen(file), TEC_TEXT_JSON, &heap, &err);
    CHECK_INT(status, ==, TEC_UNSUPPORTED);
    CHECK(status != TEC_OK && strstr(err.message, why));
    CHECK_INT(heap.live, ==, 0);
}

/* The reference cuts the characters that stand for bytes, and falls back to bytes of those. */
TEST(bytes_are_the_last_step_and_of_a_plain_bpe)
{
    static const char bytes[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    static const char cut[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                              "{\"type\":\"Digits\"}";
    check_refused(cut, "\"type\":\"BPE\"", "Digits after ByteLevel");
    check_refused(bytes, "\"type\":\"WordPiece\"", "ByteLevel before WordPiece");
    check_refused(bytes, "\"type\":\"BPE\",\"byte_fallback\":true", "byte_fallback");
}

/* Ids are those of the tokenizers package 0.22.2. */
TEST(added_tokens_and_white_space_as_the_reference)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"normalizer\":null,\"added_tokens\":["
        "{\"id\":2,\"content\":\"Q\",\"single_word\":true},"
        "{\"id\":3,\"content\":\"<r>\",\"rstrip\":true},{\"id\":4,\"content\":\"\\n\"},"
        "{\"id\":5,\"content\":\"\\t\",\"lstrip\":true,\"rstrip\":true}],"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"a\":0,\"?\":1},\"merges\":[]}"
        "}";
    static const int words[] = {1, 1, 1, 1, 1, 1, 2, 1};
    static const int again[] = {3, 4, 1, 0}, twice[] = {3, 4, 4};
    static const int once[] = {5, 0}, both[] = {4, 5, 4, 5, 0};
    check_ids(file, "Q\u200D Q\u24B6 Q\u2460", words, 8);
    check_ids(file, "<r> \n a", again, 4);
    check_ids(file, "<r>\n\n", twice, 3);
    check_ids(file, "\t\ta", once, 2);
    check_ids(file, "\n\t\n\ta", both, 5);
}

/* Ids are those of the tokenizers package 0.22.2. */
TEST(words_and_marks_are_cut_as_the_reference)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{%s},\"model\":{\"type\":"
        "\"BPE\","
        "\"ignore_merges\":true,\"unk_token\":\"?\",\"merges\":[],\"vocab\":{\"ab_c\":0,\"ab\":1,"
        "\" ab\":2,\"b\":3,\"?\":4}}}";
    static const struct {
        const char *step;
        int ids[16];
        size_t n;
    } cases[] = {
        {"\"type\":\"Whitespace\"", {0, 4, 4, 4, 4, 4, 4, 1}, 8},
        {"\"type\":\"Punctuation\"", {1, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2}, 11},
        {"\"type\":\"Punctuation\",\"behavior\":\"Removed\"", {1, 4, 4, 4, 4, 2}, 6},
        {"\"type\":\"CharDelimiterSplit\",\"delimiter\":\"a\"",
         {3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3},
         12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char whole[sizeof file + 64];
        snprintf(whole, sizeof whole, file, cases[i].step);
        check_ids(whole, "ab_c, (d)\u200D! ab", cases[i].ids, cases[i].n);
    }
}

/* Ids are those of the tokenizers package 0.22.2. */
TEST(cased_text_is_cleaned_as_the_reference)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":{\"type\":\"BertNormalizer\","
        "\"lowercase\":false%s},\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"merges\":[],"
        "\"vocab\":{\"A\":0,\"\u0301\":1,\" \":2,\"\u4E00\":3,\"\uF900\":4,\"?\":5,\"\u200B\":6}}}";
    static const char text[] = "A\u0301\t\u4E00\uF900\u200BA";
    static const int cleaned[] = {0, 1, 2, 2, 3, 2, 2, 4, 2, 0}, kept[] = {0, 1, 5, 3, 4, 6, 0};
    char whole[sizeof file + 64];
    snprintf(whole, sizeof whole, file, "");
    check_ids(whole, text, cleaned, 10);
    snprintf(whole, sizeof whole, file, ",\"clean_text\":false,\"handle_chinese_chars\":false");
    check_ids(whole, text, kept, 7);
}

/* A tokenizer of bytes with a normalizer makes of `text` the bytes of `want`; "": nothing. */
static void check_normal(const char *normalizer, const char *text, const char *want)
{
    struct tec_bytes file;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    int ids[64];
    char one[160];
    tec_arena_init(&arena, &heap);
    tec_bytes_init(&file, &arena, 0);
    int n = snprintf(
        one, sizeof one,
        "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":%s,\"model\":", normalizer);
    tec_bytes_add(&file, one, (size_t)n);
    static const char model[] =
        "{\"type\":\"BPE\",\"merges\":[],\"byte_fallback\":true,\"vocab\":{";
    tec_bytes_add(&file, model, sizeof model - 1);
    for (int b = 0; b < 256; b++) {
        n = snprintf(one, sizeof one, "%s\"<0x%02X>\":%d", b ? "," : "", (unsigned)b, b);
        tec_bytes_add(&file, one, (size_t)n);
    }
    tec_bytes_add(&file, "}}}", 4);
    REQUIRE(!file.failed);
    for (n = 0; want[n]; n++)
        ids[n] = (unsigned char)want[n];
    check_ids(file.at, text, ids, (size_t)n);
    tec_arena_finish(&arena);
}

/* Texts are those that the normalizers of the tokenizers package 0.22.2 make; over random texts
 * tools/tables/compare_normal.py compares the two. */
TEST(normalizers_as_the_reference)
{
#define BERT(fields) "{\"type\":\"BertNormalizer\"," fields "}"
    static const struct {
        const char *normalizer, *text, *want;
    } cases[] = {
        {"{\"type\":\"NFD\"}", "\u00c5\ufb01\uac01\U00011938",
         "A\u030a\ufb01\u1100\u1161\u11a8\U00011938"},
        {"{\"type\":\"NFC\"}", "A\u030a\ufb01\u1100\u1161", "\u00c5\ufb01\uac00"},
        {"{\"type\":\"NFC\"}", "\U00011935\U00011930", "\U00011935\U00011930"},
        {"{\"type\":\"NFKD\"}", "\u00c5\ufb01\u00a0\u2460\U0001fbf0", "A\u030afi 1\U0001fbf0"},
        {"{\"type\":\"NFKC\"}", "A\u030a\uff21\u2460\u32ff\ufdfa",
         "\u00c5A1\u32ff\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647 \u0648"
         "\u0633\u0644\u0645"},
        {"{\"type\":\"Lowercase\"}", "A\u0130\u0391\u03a3 \ua7da\u00df",
         "ai\u0307\u03b1\u03c3 \ua7db\u00df"},
        {"{\"type\":\"StripAccents\"}", "a\u0301\u00e1\u0903\u07fd", "a\u00e1\u07fd"},
        {"{\"type\":\"Nmt\"}", "a\x01\tb\u200bc\ufeff\ufffd", "a b c  "},
        {BERT("\"lowercase\":true,\"strip_accents\":false"), "\u00c1\u4e00\u1734",
         "\u00e1 \u4e00 \u1734"},
        {BERT("\"lowercase\":false,\"strip_accents\":true"), "\u00c1\u0903B", "A\u0903B"},
        {BERT("\"lowercase\":true,\"clean_text\":false"), "\u00c1\u200b\u4e00", "a\u200b \u4e00 "},
        {BERT("\"lowercase\":true,\"handle_chinese_chars\":false"), "\u00c1\u200b\u4e00",
         "a\u4e00"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_normal(cases[i].normalizer, cases[i].text, cases[i].want);
}

/* U+1DF8 is of Unicode 10, and its class is above that of U+034E. */
TEST(marks_behind_unicode_9_keep_their_place)
{
    static const char file[] =
        "{\"version\":\"1.0\",\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":[],"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\u1DF8\":1,\"\u034E\":2,\"\u0301\":3},"
        "\"merges\":[]}}";
    static const int expected[] = {0, 1, 2, 2};
    check_ids(file, "a\u1DF8\u034Ea\u0301\u034E", expected, 4);
}

TEST(odd_but_accepted_files)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    int ids[8];
    size_t n, bytes;
    char *text;
    tec_arena_init(&arena, &heap);
    struct tec_tokenizer *t = open_golden(&heap, "malformed/nul_token.json");
    REQUIRE(t);
    REQUIRE(tec_tokenizer_encode(t, "a\0b", 3, (struct tec_encode){0}, ids, 8, &n, &arena, &err) ==
            TEC_OK);
    CHECK_INT(n, ==, 3);
    CHECK_INT(ids[1], ==, 38);
    REQUIRE(tec_tokenizer_decode(t, ids, n, false, &arena, &text, &bytes, &err) == TEC_OK);
    CHECK_INT(bytes, ==, 3);
    CHECK(memcmp(text, "a\0b", 4) == 0);
    tec_tokenizer_close(t);
    t = open_golden(&heap, "malformed/added_clash.json");
    REQUIRE(t);
    REQUIRE(tec_tokenizer_encode(t, "a<x>b", 5, (struct tec_encode){0}, ids, 8, &n, &arena, &err) ==
            TEC_OK);
    CHECK_INT(n, ==, 3);
    REQUIRE(tec_tokenizer_decode(t, ids, n, false, &arena, &text, &bytes, &err) == TEC_OK);
    CHECK_STR(text, "a<x>b");
    tec_tokenizer_close(t);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(state_bins)
{
    static const double state[] = {-1.0, 0.0, 0.9921875, 1.0, -1.0001, 5.0, -5.0, 0.0078124};
    static const int want[] = {0, 128, 255, 255, -1, 255, -1, 128};
    double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e300, -1e300};
    static const int want_odd[] = {255, 255, -1, 255, -1};
    int bins[8];
    tec_prompt_state_bins(state, 8, bins);
    CHECK(memcmp(bins, want, sizeof want) == 0);
    tec_prompt_state_bins(odd, 5, bins);
    CHECK(memcmp(bins, want_odd, sizeof want_odd) == 0);
}

TEST(clean_text)
{
    static const char *const cases[][2] = {
        {" \t pick_up\nthe cup \x1F\n", "pick up the cup"},
        {"\xE3\x80\x80x\xC2\xA0", "x"},
        {"Keep Case", "Keep Case"},
        {" \n ", ""},
        {"", ""},
        {"\xE2\x80\x8B", "\xE2\x80\x8B"},
        {"a\x80", "a\x80"},
    };
    struct tec_heap heap = {0};
    struct tec_arena arena;
    size_t n;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *got = tec_prompt_clean(cases[i][0], strlen(cases[i][0]), &n, &arena);
        REQUIRE(got);
        CHECK_STR(got, cases[i][1]);
        CHECK_INT(n, ==, strlen(cases[i][1]));
    }
    tec_arena_finish(&arena);
}

TEST(prompt_of_one_line_and_no_room)
{
    static struct tec_template_call call = {.text = "{text}", .bos = true};
    static const struct tec_template line = {
        .name = "line", .ending = "\n", .calls = &call, .n_calls = 1};
    static const struct tec_template_values bare = {{{"wash it", 7, false}}, 1, NULL, 0},
                                            ended = {{{"wash it\n", 8, false}}, 1, NULL, 0},
                                            broken = {{{"\xFF", 1, false}}, 1, NULL, 0};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    size_t a, b;
    struct tec_error err;
    struct tec_tokenizer *t = open_golden(&heap, "gemma_like/tokenizer.model");
    int ids[8] = {0}, same[8] = {0};
    REQUIRE(t);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_template_encode(&line, t, &bare, ids, 8, &a, &arena, &err) == TEC_OK);
    REQUIRE(tec_template_encode(&line, t, &ended, same, 8, &b, &arena, &err) == TEC_OK);
    REQUIRE(a == b && a > 2 && a < 8);
    CHECK(memcmp(ids, same, sizeof ids) == 0);
    CHECK_INT(ids[0], ==, tec_tokenizer_bos(t));
    CHECK_INT(ids[a - 1], ==, 14); /* newline */
    memset(same, 0, sizeof same);
    REQUIRE(tec_template_encode(&line, t, &bare, same, 2, &b, &arena, &err) == TEC_OK);
    CHECK(b == a && same[1] == ids[1] && same[2] == 0);
    REQUIRE(tec_template_encode(&line, t, &bare, NULL, 0, &b, &arena, &err) == TEC_OK);
    CHECK(b == a);
    CHECK_INT(tec_template_encode(&line, t, &broken, ids, 8, &b, &arena, &err), ==, TEC_MALFORMED);
    tec_arena_finish(&arena);
    tec_tokenizer_close(t);
    CHECK_INT(heap.live, ==, 0);
}

/* Made with Python 3.11's str.lower (Unicode 14). */
TEST(lower_case_is_that_of_python)
{
    static const struct {
        const char *text;
        size_t n;
        const char *lower;
        size_t n_lower;
    } lines[] = {
        {"", 0, "", 0},
        {"Put The CUP", 11, "put the cup", 11},
        {"\303\200\303\211\303\216\303\225\303\234 \305\240\305\275", 15,
         "\303\240\303\251\303\256\303\265\303\274 \305\241\305\276", 15},
        {"\316\221\316\243", 4, "\316\261\317\202", 4},
        {"\316\243\316\221\316\243 \316\243\316\221\316\243.", 14,
         "\317\203\316\261\317\202 \317\203\316\261\317\202.", 14},
        {"\316\243", 2, "\317\203", 2},
        {"\316\221\316\243.", 5, "\316\261\317\202.", 5},
        {"\316\221\316\243.\316\222", 7, "\316\261\317\203.\316\262", 7},
        {"\316\221\316\243'", 5, "\316\261\317\202'", 5},
        {"\316\221\316\243'\316\221", 7, "\316\261\317\203'\316\261", 7},
        {"\316\221\316\243\314\201", 6, "\316\261\317\202\314\201", 6},
        {"\304\260stanbul", 9, "i\314\207stanbul", 10},
        {"I\304\236DIR", 6, "i\304\237dir", 6},
        {"\307\205 \307\204", 5, "\307\206 \307\206", 5},
        {"\341\272\236", 3, "\303\237", 2},
        {"\342\205\247 \342\222\266", 7, "\342\205\267 \342\223\220", 7},
        {"\302\252\316\243", 4, "\302\252\317\202", 4},
        {"\342\223\220\316\243", 5, "\342\223\220\317\202", 5},
        {"1\316\243", 3, "1\317\203", 3},
        {"\352\231\200 \341\202\240\341\216\240 \352\255\260", 14,
         "\352\231\201 \342\264\200\352\255\260 \352\255\260", 14},
        {"\360\220\220\200\360\235\220\200", 8, "\360\220\220\250\360\235\220\200", 8},
        {"a\000B\316\243", 5, "a\000b\317\202", 5},
        {"\316\243\000", 3, "\317\203\000", 3},
        {"\316\214\316\224\316\237\316\243 \316\214\316\224\316\237\316\243\316\221", 19,
         "\317\214\316\264\316\277\317\202 \317\214\316\264\316\277\317\203\316\261", 19},
        {"\342\200\230\316\243\316\221\316\243\342\200\231", 12,
         "\342\200\230\317\203\316\261\317\202\342\200\231", 12},
        {"\377\303 A\200", 5, "\377\303 a\200", 5}, /* what is not UTF-8 is kept */
    };
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct tec_bytes out;
        tec_bytes_init(&out, &arena, 0);
        tec_unicode_lower(&out, lines[i].text, lines[i].n);
        CHECK_INT(out.n, ==, lines[i].n_lower);
        bool equal = out.n == 0 || memcmp(out.at, lines[i].lower, out.n) == 0;
        if (!equal)
            fprintf(stderr, "# line %zu\n", i);
        CHECK(equal);
    }
    tec_arena_finish(&arena);
}

TAP_MAIN
