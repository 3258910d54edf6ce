/* safetensors.c - tensor files: the golden cases, conversions, reading, writing, failures. */
#include "base/store/safetensors.h"
#include "base/store/scan.h"
#include "tests/box.h"
#include "tests/judge/sha256.h"
#include "tests/judge/verify.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define GOLDEN "tests/golden/safetensors"

/* A folder of this test's own. */
struct scratch {
    char dir[64], path[128];
};

static void scratch_make(struct scratch *s)
{
    box_folder(s->dir, sizeof s->dir);
    snprintf(s->path, sizeof s->path, "%s/x.safetensors", s->dir);
}

static void scratch_remove(struct scratch *s)
{
    unlink(s->path);
    CHECK(rmdir(s->dir) == 0); /* nothing else was left in it */
}

static void put_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    REQUIRE(f);
    CHECK(fwrite(bytes, 1, n, f) == n);
    CHECK(fclose(f) == 0);
}

static size_t get_file(const char *path, char *bytes, size_t room)
{
    FILE *f = fopen(path, "rb");
    REQUIRE(f);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    return n;
}

static void judge(const char *kind, const char *dir, int at_least)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err = {0};
    tec_arena_init(&arena, &heap);
    struct tec_verify v = {.dir = dir, .dtype = "f32", .heap = &heap, .arena = &arena};
    enum tec_status status = TEC_INVALID;
    if (strcmp(kind, "files") == 0)
        status = tec_verify_safetensors_files(&v, &err);
    else if (strcmp(kind, "sharded") == 0)
        status = tec_verify_safetensors_sharded(&v, &err);
    else
        status = tec_verify_safetensors_conversions(&v, &err);
    CHECK_INT(status, ==, TEC_OK);
    CHECK_INT(v.failed, ==, 0);
    CHECK_INT(v.checks, >=, at_least);
    CHECK_INT(heap.peak, <, 2 << 20); /* the largest file has 200 kB */
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(golden_files)
{
    judge("files", GOLDEN, 81);
}

TEST(golden_sharded)
{
    judge("sharded", GOLDEN "/sharded", 14);
}

TEST(golden_conversions)
{
    judge("conversions", GOLDEN "/conversions", 10);
}

TEST(sha256_vectors)
{
    char text[65];
    char a[1000];
    memset(a, 'a', sizeof a);
    tec_sha256("", 0, text);
    CHECK_STR(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    tec_sha256("abc", 3, text);
    CHECK_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    tec_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, text);
    CHECK_STR(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    tec_sha256(a, sizeof a, text);
    CHECK_STR(text, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

TEST(dtypes_know_their_names)
{
    enum tec_dtype d = TEC_U8;
    for (int i = 0; i < TEC_N_DTYPES; i++) {
        CHECK(tec_dtype_find(tec_dtype_name((enum tec_dtype)i), &d));
        CHECK_INT(d, ==, i);
        CHECK_INT(tec_dtype_bits(d), >=, 4);
    }
    CHECK(!tec_dtype_find("f32", &d));
    CHECK(!tec_dtype_find("", &d));
    CHECK_STR(tec_dtype_name(TEC_N_DTYPES), "?");
    CHECK_INT(tec_dtype_bits(TEC_N_DTYPES), ==, 0);
}

/* Every code of a narrow format comes back from its own value. */
TEST(narrowing_inverts_widening)
{
    for (unsigned u = 0; u < 0x10000; u++) {
        float h = tec_f16_to_f32((uint16_t)u), b = tec_bf16_to_f32((uint16_t)u);
        if (!isnan(h))
            CHECK_INT(tec_f32_to_f16(h), ==, u);
        if (!isnan(b))
            CHECK_INT(tec_f32_to_bf16(b), ==, u);
        CHECK(isnan(tec_f16_to_f32(tec_f32_to_f16(h))) == isnan(h));
        CHECK(isnan(tec_bf16_to_f32(tec_f32_to_bf16(b))) == isnan(b));
    }
    for (unsigned u = 0; u < 0x100; u++) {
        float x = tec_f8_e5m2_to_f32((uint8_t)u), y = tec_f8_e4m3_to_f32((uint8_t)u);
        if (!isnan(x))
            CHECK_INT(tec_f32_to_f8_e5m2(x), ==, u);
        if (!isnan(y))
            CHECK_INT(tec_f32_to_f8_e4m3(y), ==, u);
    }
    CHECK(tec_f8_e8m0_to_f32(127) == 1.0F);
    CHECK(tec_f8_e8m0_to_f32(0) == 0x1p-127F);
    CHECK(isnan(tec_f8_e8m0_to_f32(255)));
}

TEST(integers_read_as_float)
{
    struct tec_error err;
    float x[2];
    int64_t wide[2] = {INT64_MIN, 16777217}; /* 2^24 + 1 rounds to even */
    uint64_t large = UINT64_MAX;
    double d[1] = {1e300};
    unsigned char misaligned[9] = {0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    CHECK_INT(tec_to_f32(TEC_I64, wide, x, 2, &err), ==, TEC_OK);
    CHECK(x[0] == -0x1p63F && x[1] == 16777216.0F);
    CHECK_INT(tec_to_f32(TEC_U64, &large, x, 1, &err), ==, TEC_OK);
    CHECK(x[0] == 0x1p64F);
    CHECK_INT(tec_to_f32(TEC_F64, d, x, 1, &err), ==, TEC_OK);
    CHECK(isinf(x[0]));
    CHECK_INT(tec_to_f32(TEC_I32, misaligned + 1, x, 2, &err), ==, TEC_OK);
    CHECK(x[0] == 1.0F && x[1] == -1.0F);
    CHECK_INT(tec_to_f32(TEC_F4, wide, x, 1, &err), ==, TEC_UNSUPPORTED);
    CHECK_INT(tec_to_f32(TEC_C64, wide, x, 1, &err), ==, TEC_UNSUPPORTED);
}

static enum tec_status parse(const char *json, uint64_t room, struct tec_error *err)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_header header;
    size_t n = strlen(json);
    tec_arena_init(&arena, &heap);
    enum tec_status status = tec_header_parse(&header, json, n, 8 + n + room, &arena, err);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

TEST(messages_say_where_and_what)
{
    struct tec_error err;
    CHECK_INT(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, &err),
              ==, TEC_MALFORMED);
    CHECK_STR(err.message, "header byte 5: tensor 'a': shape and dtype need 8 bytes, data_offsets "
                           "give 4");
    CHECK_INT(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, &err),
              ==, TEC_MALFORMED);
    CHECK_STR(err.message, "the tensors end at data byte 4, but the file has 5: it is longer than "
                           "its header says");
    CHECK_INT(parse("{\"a\\u0000\":1}", 0, &err), ==, TEC_MALFORMED);
    CHECK_STR(err.message, "header byte 1: a name with a NUL character");
    CHECK_INT(parse("{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}}", 0, &err), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "'k' is given twice"));
    CHECK_INT(parse("{\"__metadata__\":null}", 0, &err), ==, TEC_OK);
    CHECK_INT(parse("{\"__metadata__\":nul}", 0, &err), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "an object of strings"));
}

#define ODD_ENTRY "{\"a\":{\"x\":%s,\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}"

TEST(entries_take_unknown_fields_of_any_json)
{
    struct tec_error err;
    static const char *const good[] = {"null",     "true", "-1.5e+3",
                                       "\"s\\n\"", "[]",   "{}",
                                       "[1,[{}]]", "0",    "{\"y\":[0,1],\"z\":{}}"};
    static const char *const bad[] = {
        "nul",   "01",      "1.",  "-",          "[1,]", "{\"a\"}",           "{\"a\":}",
        "[1 2]", "\"\\q\"", "'a'", "{\"a\":1,}", "+1",   "[[[[[[[[[]]]]]]]]]"};
    char json[200];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(json, sizeof json, ODD_ENTRY, good[i]);
        CHECK_INT(parse(json, 1, &err), ==, TEC_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(json, sizeof json, ODD_ENTRY, bad[i]);
        CHECK_INT(parse(json, 1, &err), ==, TEC_MALFORMED);
    }
}

TEST(reads_stay_inside_the_tensor)
{
    struct tec_heap heap = {0};
    struct tec_error err;
    struct tec_tensors *t;
    REQUIRE(tec_tensors_open(&t, GOLDEN "/files/misaligned.safetensors", &heap, &err) == TEC_OK);
    REQUIRE(tec_tensors_count(t) > 0);
    for (size_t i = 0; i < tec_tensors_count(t); i++) {
        const struct tec_stored *s = tec_tensors_at(t, i);
        char byte[8];
        float x[2];
        CHECK_INT(tec_tensors_read(t, s, s->bytes, byte, 1, &err), ==, TEC_INVALID);
        CHECK_INT(tec_tensors_read(t, s, UINT64_MAX, byte, 2, &err), ==, TEC_INVALID);
        CHECK_INT(tec_tensors_read(t, s, s->bytes, byte, 0, &err), ==, TEC_OK);
        CHECK_INT(tec_tensors_read_f32(t, s, (uint64_t)tec_stored_count(s), x, 1, &err), !=,
                  TEC_OK);
        CHECK_INT(tec_tensors_read_f32(t, s, UINT64_MAX / 2, x, 2, &err), !=, TEC_OK);
    }
    CHECK(!tec_tensors_find(t, "no such"));
    CHECK(!tec_tensors_metadata_entry(t, "no such"));
    tec_tensors_close(t);
    CHECK_INT(heap.live, ==, 0);
}

/* 20000 bf16 values: more than the buffer of a converted read. */
TEST(converted_reads_cross_the_buffer)
{
    enum { N = 20000 };
    static uint16_t codes[N];
    static float x[N];
    struct scratch s;
    struct tec_heap heap = {0};
    struct tec_error err;
    struct tec_tensors *t;
    for (int i = 0; i < N; i++)
        codes[i] = tec_f32_to_bf16((float)i);
    scratch_make(&s);
    struct tec_tensor_entry entries[] = {
        {.name = "w", .dtype = TEC_BF16, .rank = 2, .shape = {2, N / 2}, .data = codes},
        {.name = "odd", .dtype = TEC_U8, .rank = 1, .shape = {1}, .data = codes}};
    REQUIRE(tec_tensors_write(s.path, entries, 2, &heap, &err) == TEC_OK);
    REQUIRE(tec_tensors_open(&t, s.path, &heap, &err) == TEC_OK);
    const struct tec_stored *w = tec_tensors_find(t, "w");
    REQUIRE(w && w->rank == 2 && w->shape[1] == N / 2);
    CHECK_INT(tec_tensors_read_f32(t, w, 3, x, N - 3, &err), ==, TEC_OK);
    for (int i = 3; i < N; i++)
        CHECK(x[i - 3] == tec_bf16_to_f32(codes[i]));
    CHECK_INT(tec_tensors_bytes(t), ==, 2 * N + 1);
    tec_tensors_close(t);
    CHECK_INT(heap.live, ==, 0);
    scratch_remove(&s);
}

/* A file that shrinks while it is open is an error, not a signal. */
TEST(a_shrunk_file_is_an_error)
{
    struct scratch s;
    struct tec_heap heap = {0};
    struct tec_error err = {0};
    struct tec_tensors *t;
    char data[4096] = {1}, got[4096];
    scratch_make(&s);
    struct tec_tensor_entry e = {
        .name = "w", .dtype = TEC_U8, .rank = 1, .shape = {sizeof data}, .data = data};
    REQUIRE(tec_tensors_write(s.path, &e, 1, &heap, &err) == TEC_OK);
    REQUIRE(tec_tensors_open(&t, s.path, &heap, &err) == TEC_OK);
    REQUIRE(truncate(s.path, 100) == 0);
    CHECK_INT(tec_tensors_read(t, tec_tensors_find(t, "w"), 0, got, sizeof got, &err), ==, TEC_IO);
    CHECK(strstr(err.message, "ends at byte 100"));
    tec_tensors_close(t);
    scratch_remove(&s);
}

/* What the reference wrote is what we write from its tensors, header and all. */
static void rewrite(const char *file)
{
    static char want[1 << 18], got[1 << 18];
    struct scratch s;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err = {0};
    struct tec_tensors *t;
    char path[200];
    snprintf(path, sizeof path, "tests/golden/%s", file);
    scratch_make(&s);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_tensors_open(&t, path, &heap, &err) == TEC_OK);
    size_t n = tec_tensors_count(t);
    struct tec_tensor_entry *e = TEC_NEW(&arena, n, struct tec_tensor_entry);
    for (size_t i = 0; i < n; i++) {
        const struct tec_stored *x = tec_tensors_at(t, n - 1 - i);
        void *data = tec_arena_push(&arena, (size_t)x->bytes, 1, 1);
        REQUIRE(tec_tensors_read(t, x, 0, data, (size_t)x->bytes, &err) == TEC_OK);
        e[i] = (struct tec_tensor_entry){x->name, x->dtype, x->rank, {0}, data};
        memcpy(e[i].shape, x->shape, sizeof x->shape);
    }
    CHECK_INT(tec_tensors_write(s.path, e, n, &heap, &err), ==, TEC_OK);
    size_t n_want = get_file(path, want, sizeof want), n_got = get_file(s.path, got, sizeof got);
    CHECK_INT(n_got, ==, n_want);
    CHECK(memcmp(got, want, n_want) == 0);
    tec_tensors_close(t);
    tec_arena_finish(&arena);
    scratch_remove(&s);
}

TEST(writer_gives_the_reference_bytes)
{
    rewrite("safetensors/conversions/expected.safetensors");
    rewrite("safetensors/sharded/expected.safetensors");
    rewrite("pi/pi05_odd_lerobot/checkpoint/pretrained_model/"
            "policy_preprocessor_step_3_normalizer_processor.safetensors");
}

TEST(writer_escapes_names_and_refuses_bad_entries)
{
    struct scratch s;
    struct tec_heap heap = {0};
    struct tec_error err;
    struct tec_tensors *t;
    unsigned char data[2] = {7, 9};
    const char *name = "a\"b\\c\n\x01 \xc3\xa9";
    struct tec_tensor_entry e[2] = {{name, TEC_U8, 0, {0}, data}, {"", TEC_I16, 1, {0}, NULL}};
    scratch_make(&s);
    CHECK_INT(tec_tensors_write(s.path, e, 2, &heap, &err), ==, TEC_OK);
    REQUIRE(tec_tensors_open(&t, s.path, &heap, &err) == TEC_OK);
    CHECK(tec_tensors_find(t, name));
    CHECK(tec_tensors_find(t, ""));
    tec_tensors_close(t);
    e[1].name = name;
    CHECK_INT(tec_tensors_write(s.path, e, 2, &heap, &err), ==, TEC_INVALID);
    e[1].name = "\xff";
    CHECK_INT(tec_tensors_write(s.path, e, 2, &heap, &err), ==, TEC_INVALID);
    e[1].name = "__metadata__";
    CHECK_INT(tec_tensors_write(s.path, e, 2, &heap, &err), ==, TEC_INVALID);
    e[1] = (struct tec_tensor_entry){"f", TEC_F4, 1, {3}, data};
    CHECK_INT(tec_tensors_write(s.path, e, 2, &heap, &err), ==, TEC_INVALID);
    e[1] = (struct tec_tensor_entry){"f", TEC_F32, 2, {INT64_MAX, 8}, data};
    CHECK_INT(tec_tensors_write(s.path, e, 2, &heap, &err), ==, TEC_INVALID);
    CHECK_INT(tec_tensors_write("/nowhere/x", e, 1, &heap, &err), ==, TEC_IO);
    CHECK_INT(tec_tensors_write(s.path, e, 0, &heap, &err), ==, TEC_OK);
    scratch_remove(&s);
    CHECK_INT(heap.live, ==, 0);
}

static void hash(const char *path, char text[TEC_HASH_TEXT])
{
    struct tec_heap heap = {0};
    struct tec_error err;
    struct tec_tensors *t;
    REQUIRE(tec_tensors_open(&t, path, &heap, &err) == TEC_OK);
    tec_tensors_hash(t, text);
    tec_tensors_close(t);
}

TEST(hash_follows_headers_not_names)
{
    char a[TEC_HASH_TEXT], b[TEC_HASH_TEXT], bytes[4096];
    struct scratch s;
    hash(GOLDEN "/files/scalar.safetensors", a);
    CHECK_INT(strlen(a), ==, 32);
    hash(GOLDEN "/files/rank_8.safetensors", b);
    CHECK(strcmp(a, b) != 0);
    scratch_make(&s);
    size_t n = get_file(GOLDEN "/files/scalar.safetensors", bytes, sizeof bytes);
    put_file(s.path, bytes, n);
    hash(s.path, b);
    CHECK_STR(b, a);
    scratch_remove(&s);
}

/* Every allocation fails once: TEC_NO_MEMORY and nothing left. */
TEST(no_memory_is_reported)
{
    static const char *const paths[] = {GOLDEN "/files/many.safetensors", GOLDEN "/sharded/good"};
    for (int p = 0; p < 2; p++) {
        for (int64_t at = 1; at < 1000; at++) {
            struct tec_heap heap = {.fail_at = at};
            struct tec_error err = {0};
            struct tec_tensors *t;
            enum tec_status status = tec_tensors_open(&t, paths[p], &heap, &err);
            bool done = status == TEC_OK;
            CHECK(done || status == TEC_NO_MEMORY);
            CHECK(done || *err.message);
            tec_tensors_close(t);
            CHECK_INT(heap.live, ==, 0);
            if (done)
                break;
        }
    }
}

TAP_MAIN
