/* wire.c - openpi's messages: bytes as its own packer made them, and what hostile ones come to. */
#include "tests/tap.h"
#include "tools/serve/reply.h"
#include "tools/serve/request.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { MAX = 1 << 16 };

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_error err;
static struct tec_request_message request;
static uint8_t bytes[MAX + 64];

/* A golden message into `bytes`. */
static size_t golden(const char *name)
{
    json_t *json = json_load_file("tests/golden/wire/openpi_wire_golden.json", 0, NULL);
    const char *hex = json_string_value(json_object_get(json, name));
    size_t n = 0;
    for (; hex && hex[2 * n]; n++) {
        const char digits[3] = {hex[2 * n], hex[2 * n + 1], '\0'};
        bytes[n] = (uint8_t)strtoul(digits, NULL, 16);
    }
    json_decref(json);
    return n;
}

static enum tec_status decode(size_t n)
{
    tec_arena_finish(&arena);
    tec_arena_init(&arena, &heap);
    err = (struct tec_error){.message = ""};
    return tec_serve_request_read(&request, bytes, n, &arena, &err);
}

/* The golden value `name` under the key "x". */
static const struct tec_value *value_of(const char *name)
{
    size_t n = golden(name);
    memmove(bytes + 3, bytes, n);
    memcpy(bytes, "\x81\xa1x", 3);
    if (decode(n + 3) != TEC_OK || request.n != 1)
        return NULL;
    return &request.values[0];
}

static void check_array(const char *name, enum tec_value_kind kind, int rank, const int *shape,
                        const void *data, size_t size)
{
    const struct tec_value *v = value_of(name);
    REQUIRE(v);
    CHECK_STR(v->name, "x");
    CHECK_INT(v->kind, ==, kind);
    CHECK_INT(v->rank, ==, rank);
    for (int i = 0; i < rank; i++)
        CHECK_INT(v->shape[i], ==, shape[i]);
    CHECK_INT(v->bytes, ==, size);
    CHECK(size == 0 || memcmp(v->data, data, size) == 0);
}

TEST(golden_arrays_are_read)
{
    const float f[6] = {0, 1, 2, 3, 4, 5}, turned[4] = {0, 1, 2, 3};
    const double s[8] = {0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875};
    const uint8_t u[6] = {0, 1, 2, 3, 4, 5};
    check_array("f32_2x3", TEC_VALUE_F32, 2, (const int[]){2, 3}, f, sizeof f);
    check_array("u8_img_1x2x3", TEC_VALUE_U8, 3, (const int[]){1, 2, 3}, u, sizeof u);
    check_array("f64_state8", TEC_VALUE_F64, 1, (const int[]){8}, s, sizeof s);
    check_array("fortran_order_2x2", TEC_VALUE_F32, 2, (const int[]){2, 2}, turned, sizeof turned);
    check_array("zero_len", TEC_VALUE_F32, 2, (const int[]){0, 7}, NULL, 0);
    const double three = 3.0, one = 1.0, half = 1.5;
    check_array("zero_dim", TEC_VALUE_F64, 0, NULL, &three, sizeof three);
    check_array("bool_scalar", TEC_VALUE_F64, 0, NULL, &one, sizeof one);
    check_array("f32_scalar", TEC_VALUE_F64, 0, NULL, &half, sizeof half);
}

TEST(golden_observation_is_read)
{
    REQUIRE(decode(golden("libero_obs")) == TEC_OK);
    REQUIRE(request.n == 4);
    CHECK_STR(request.values[0].name, "observation/state");
    CHECK_STR(request.values[1].name, "observation/image");
    CHECK_STR(request.values[2].name, "observation/wrist_image");
    CHECK_INT(request.values[3].kind, ==, TEC_VALUE_TEXT);
    CHECK_INT(request.values[3].bytes, ==, 12);
    CHECK(memcmp(request.values[3].data, "do something", 12) == 0);
    CHECK(!request.extended && !request.inner[0] && request.wants_actions && !request.wants_text);
}

TEST(golden_reply_is_written)
{
    static uint8_t out[MAX];
    static const double zeros[70];
    size_t n = golden("infer_reply");
    const struct tec_reply reply = {.actions = zeros,
                                    .rows = 10,
                                    .columns = 7,
                                    .policy_ms = 12.5,
                                    .server_ms = 13.0,
                                    .previous_ms = 15.0};
    struct tec_reply_buffer b = {.data = out, .room = sizeof out};
    tec_reply_pack(&b, &reply);
    CHECK(!b.full);
    CHECK_INT(b.n, ==, n);
    CHECK(n > 0 && memcmp(out, bytes, n) == 0);
    b = (struct tec_reply_buffer){.data = out, .room = n - 1};
    tec_reply_pack(&b, &reply);
    CHECK(b.full);
    CHECK_INT(n, <=, tec_reply_size(10, 7, 1, 0, 0, 0));
}

TEST(golden_metadata_is_written)
{
    static uint8_t out[MAX];
    struct tec_reply_buffer b = {.data = out, .room = sizeof out};
    json_t *json = json_loads("{\"reset_pose\": [0, -1.5, 1.5, 0, 0, 0]}", 0, NULL);
    size_t n = golden("aloha_metadata");
    tec_reply_pack_json(&b, json);
    CHECK_INT(b.n, ==, n);
    CHECK(memcmp(out, bytes, n) == 0);
    b.n = 0;
    n = golden("empty_metadata");
    tec_reply_pack_json(&b, NULL);
    CHECK(b.n == n && memcmp(out, bytes, n) == 0);
    json_decref(json);
}

TEST(extended_replies_fit_their_size)
{
    static uint8_t out[MAX];
    static const double zeros[16 * 4];
    const struct tec_reply reply = {.actions = zeros,
                                    .rows = 16,
                                    .columns = 4,
                                    .previous_ms = 1.0,
                                    .extended = true,
                                    .has_text = true,
                                    .text = "move",
                                    .text_bytes = 4,
                                    .request = INT64_MAX,
                                    .reason = "thirty-one bytes of some reason",
                                    .chunk_id = INT64_MAX,
                                    .obs_ts = INT64_MAX};
    struct tec_reply_buffer b = {.data = out, .room = tec_reply_size(16, 4, 1, 4, 0, 0)};
    tec_reply_pack(&b, &reply);
    CHECK(!b.full);
}

/* Messages in C: their bytes without the NUL. */
static enum tec_status read_text(const char *message, size_t n)
{
    memcpy(bytes, message, n);
    return decode(n);
}
#define READ(text) read_text(text, sizeof(text) - 1)

/* {"x": an ndarray of these entries} with str keys. */
#define NDARRAY(dtype, shape, data)        \
    "\x81\xa1x\x84\xab__ndarray__\xc3\xa4" \
    "data" data "\xa5"                     \
    "dtype" dtype "\xa5"                   \
    "shape" shape

TEST(other_dtypes_become_float64)
{
    REQUIRE(READ(NDARRAY("\xa3<i2", "\x91\x02", "\xc4\x04\xff\xff\x02\x00")) == TEC_OK);
    double x[4];
    memcpy(x, request.values[0].data, 2 * sizeof *x);
    CHECK_INT(request.values[0].kind, ==, TEC_VALUE_F64);
    CHECK(x[0] == -1.0 && x[1] == 2.0);
    REQUIRE(READ(NDARRAY("\xa3<f2", "\x91\x04", "\xc4\x08\x00\x3c\x00\xc0\x01\x00\x00\x7c")) ==
            TEC_OK);
    memcpy(x, request.values[0].data, sizeof x);
    CHECK(x[0] == 1.0 && x[1] == -2.0 && x[2] == ldexp(1.0, -24) && isinf(x[3]));
    REQUIRE(READ(NDARRAY("\xa3|b1", "\x91\x02", "\xc4\x02\x01\x00")) == TEC_OK);
    memcpy(x, request.values[0].data, 2 * sizeof *x);
    CHECK(x[0] == 1.0 && x[1] == 0.0);
    REQUIRE(READ(NDARRAY("\xa3<u4", "\x90", "\xc4\x04\xff\xff\xff\xff")) == TEC_OK);
    memcpy(x, request.values[0].data, sizeof *x);
    CHECK(x[0] == 4294967295.0 && request.values[0].rank == 0);
}

TEST(texts_come_in_three_forms)
{
    REQUIRE(READ(NDARRAY("\xa3<U2", "\x90", "\xc4\x08h\0\0\0\xe9\0\0\0")) == TEC_OK);
    CHECK_INT(request.values[0].kind, ==, TEC_VALUE_TEXT);
    CHECK_INT(request.values[0].bytes, ==, 3);
    CHECK(memcmp(request.values[0].data, "h\xc3\xa9", 3) == 0);
    REQUIRE(READ("\x81\xa1x\xc4\x02hi") == TEC_OK);
    CHECK_INT(request.values[0].bytes, ==, 2);
    REQUIRE(READ("\x81\xc4\x01x\xa2hi") == TEC_OK);
    CHECK_STR(request.values[0].name, "x");
}

TEST(maps_inside_get_a_slash)
{
    REQUIRE(READ("\x82\xa1"
                 "a\x82\xa1"
                 "b\x01\xa1"
                 "c\x81\xa1"
                 "d\xff\xa1"
                 "e\xc0") == TEC_OK);
    REQUIRE(request.n == 2);
    CHECK_STR(request.values[0].name, "a/b");
    CHECK_STR(request.values[1].name, "a/c/d");
    CHECK(request.inner[0] && request.inner[1]);
    REQUIRE(READ("\x82\xa1"
                 "a\x93\x01\xcb\x3f\xe0\0\0\0\0\0\0\xc3\xa1"
                 "b\x92\x92\x01\x02\x92\x03\x04") == TEC_OK);
    double x[4];
    CHECK_INT(request.values[0].shape[0], ==, 3);
    memcpy(x, request.values[0].data, 3 * sizeof *x);
    CHECK(x[0] == 1.0 && x[1] == 0.5 && x[2] == 1.0);
    CHECK_INT(request.values[1].rank, ==, 2);
    memcpy(x, request.values[1].data, sizeof x);
    CHECK(x[2] == 3.0 && x[3] == 4.0);
}

TEST(the_optional_map_is_read)
{
    REQUIRE(READ("\x81\xa6tectum\x83\xa4seed\xcf\xff\xff\xff\xff\xff\xff\xff\xff"
                 "\xa5tasks\x92\xa6"
                 "action\xa4text\xaasession_id\xa1"
                 "a") == TEC_OK);
    CHECK(request.extended && request.has_seed && request.seed == UINT64_MAX);
    CHECK(request.wants_actions && request.wants_text);
    CHECK_INT(request.n, ==, 0);
    REQUIRE(READ("\x81\xa6tectum\x81\xa5tasks\x91\xa4text") == TEC_OK);
    CHECK(!request.wants_actions && request.wants_text);
    CHECK(!request.ask.node && request.ask.max_tokens == 0 && request.ask.prio == 0);
    REQUIRE(READ("\x81\xa6tectum\x82\xa3"
                 "ask\x83\xa4node\xa4talk\xaamax_tokens\x05\xa4prio\x02\xa5tasks\x91\xa6"
                 "action") == TEC_OK);
    CHECK(request.wants_actions && request.wants_text);
    CHECK_STR(request.ask.node, "talk");
    CHECK(request.ask.max_tokens == 5 && request.ask.prio == 2);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa3"
                   "ask\x82\xa4prio\x01\xa4prio\x01"),
              ==, TEC_MALFORMED);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa3"
                   "ask\x81\xaamax_tokens\xce\xff\xff\xff\xff"),
              ==, TEC_INVALID);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa4sead\x01"), ==, TEC_NOT_FOUND);
    CHECK(strstr(err.message, "did you mean 'seed'"));
    CHECK_INT(READ("\x81\xa6tectum\x81\xa4seed\xff"), ==, TEC_INVALID);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa5tasks\x91\xa3sit"), ==, TEC_INVALID);
    CHECK_INT(READ("\x81\xa6tectum\x01"), ==, TEC_INVALID);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa5noise\x91\xa1x"), ==, TEC_SHAPE);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa5noise\xc0"), ==, TEC_OK);
    CHECK(!request.noise.name);
}

static enum tec_status read_options(const char *message, size_t n)
{
    memcpy(bytes, message, n);
    tec_arena_finish(&arena);
    tec_arena_init(&arena, &heap);
    return tec_serve_request_options(&request, bytes, n, &arena, &err);
}
#define OPTIONS(text) read_options(text, sizeof(text) - 1)

TEST(deadlines_are_read_without_the_rest)
{
    REQUIRE(READ("\x81\xa6tectum\x83\xab"
                 "deadline_ms\x28\xa6obs_ts\xcd\x01\x00\xa5reset\xc3") == TEC_OK);
    CHECK(request.deadline_ms == 40.0 && request.has_captured && request.reset);
    CHECK_INT(request.captured_ns, ==, 256);
    CHECK_INT(READ("\x80"), ==, TEC_OK);
    CHECK(request.deadline_ms == 0.0 && !request.has_captured && !request.reset);
    /* Behind an array of a type that there is not, and a key that is none. */
    CHECK_INT(
        OPTIONS("\x83\xa1x\x81\xa1y\x92\x01\x02\x01\xc0\xa6tectum\x82\xa5tasks\x91\xa4text\xab"
                "deadline_ms\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"),
        ==, TEC_OK);
    CHECK(request.deadline_ms == 1.5 && request.wants_text && !request.wants_actions);
    CHECK_INT(OPTIONS("\x81\xa1x\x01"), ==, TEC_OK);
    CHECK(request.deadline_ms == 0.0 && request.wants_actions);
    CHECK_INT(OPTIONS("\x93\x01\x02\x03"), ==, TEC_OK);
    CHECK_INT(OPTIONS(""), ==, TEC_MALFORMED);
    CHECK_INT(OPTIONS("\xdf\xff\xff\xff\xff"), ==, TEC_MALFORMED);
    CHECK_INT(OPTIONS("\x82\xa1x\xc4\xff\x00"), ==, TEC_MALFORMED);
    CHECK_INT(OPTIONS("\x81\xa6tectum\x81\xab"
                      "deadline_ms\xff"),
              ==, TEC_INVALID);
    CHECK_INT(READ("\x81\xa6tectum\x81\xab"
                   "deadline_ms\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),
              ==, TEC_INVALID); /* NaN */
    REQUIRE(READ("\x81\xa6tectum\x81\xab"
                 "deadline_ms\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00") == TEC_OK); /* for ever */
    CHECK(request.deadline_ms == 1e9);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa6obs_ts\xff"), ==, TEC_INVALID);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa6obs_ts\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), ==,
              TEC_INVALID);
    CHECK_INT(READ("\x81\xa6tectum\x81\xa5reset\x01"), ==, TEC_INVALID);
}

TEST(hostile_messages_are_refused)
{
    CHECK_INT(READ(""), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x01"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x80\x80"), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "1 bytes follow"));
    CHECK_INT(READ("\x81\xa1x"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\xdf\xff\xff\xff\xff"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x81\xa1x\xdd\xff\xff\xff\xff\x01"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x81\xa1x\xc6\xff\xff\xff\xff\x01"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x81\xa1x\xc1"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x81\x01\x01"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x82\xa1x\x01\xa1x\x02"), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "given twice"));
    CHECK_INT(READ("\x81\xa2x\0\x01"), ==, TEC_MALFORMED);
    CHECK_INT(READ("\x81\xa1x\x92\x91\x01\x92\x01\x02"), ==, TEC_MALFORMED);
}

TEST(hostile_arrays_are_refused)
{
    CHECK_INT(READ(NDARRAY("\xa3<f4", "\x91\x02", "\xc4\x04\0\0\0\0")), ==, TEC_SHAPE);
    CHECK_INT(READ(NDARRAY("\xa3<c8", "\x91\x01", "\xc4\x08\0\0\0\0\0\0\0\0")), ==,
              TEC_UNSUPPORTED);
    CHECK(strstr(err.message, "'<c8'"));
    CHECK_INT(READ(NDARRAY("\xa3>f4", "\x91\x01", "\xc4\x04\0\0\0\0")), ==, TEC_UNSUPPORTED);
    CHECK_INT(READ(NDARRAY("\xa2|O", "\x91\x01", "\xc4\x04\0\0\0\0")), ==, TEC_UNSUPPORTED);
    CHECK_INT(READ(NDARRAY("\x01", "\x91\x01", "\xc4\x04\0\0\0\0")), ==, TEC_MALFORMED);
    CHECK_INT(READ(NDARRAY("\xa3<f4", "\x95\x01\x01\x01\x01\x01", "\xc4\x04\0\0\0\0")), ==,
              TEC_SHAPE);
    CHECK_INT(READ(NDARRAY("\xa3<f4", "\x91\xff", "\xc4\x04\0\0\0\0")), ==, TEC_SHAPE);
    CHECK_INT(READ(NDARRAY("\xa3<f8",
                           "\x94\xce\x7f\xff\xff\xff\xce\x7f\xff\xff\xff\xce\x7f\xff\xff\xff\x08",
                           "\xc4\x00")),
              ==, TEC_SHAPE);
    CHECK_INT(READ(NDARRAY("\xa3<f4", "\xc0", "\xc4\x04\0\0\0\0")), ==, TEC_SHAPE);
    CHECK_INT(READ(NDARRAY("\xa3<U1", "\x90", "\xc4\x04\xff\xff\xff\xff")), ==, TEC_MALFORMED);
    CHECK_INT(READ(NDARRAY("\xa3<U1", "\x91\x01", "\xc4\x04h\0\0\0")), ==, TEC_UNSUPPORTED);
    CHECK_INT(READ("\x81\xa1x\x81\xab__ndarray__\xc3"), ==, TEC_MALFORMED);
}

/* The connection thread reads the map `tectum`: it does no work for what it will refuse. */
TEST(arrays_of_the_map_are_judged_before_they_are_converted)
{
    CHECK_INT(READ("\x81\xa6tectum\x81\xa4seed\x92\x01\x02"), ==, TEC_SHAPE);
    CHECK(strstr(err.message, "tectum.seed: a list of 2 numbers, at most 1"));
    CHECK_INT(READ("\x81\xa6tectum\x81\xa4seed\x84\xab__ndarray__\xc3\xa4"
                   "data\xc4\x04\1\0\2\0"
                   "\xa5"
                   "dtype\xa3<i2\xa5shape\x91\x02"),
              ==, TEC_UNSUPPORTED);
    CHECK(strstr(err.message, "tectum.seed: 2 elements to convert, at most 1"));
    CHECK_INT(READ("\x81\xa6tectum\x81\xa4seed\x84\xab__ndarray__\xc3\xa4"
                   "data\xc4\x02\7\0"
                   "\xa5"
                   "dtype\xa3<i2\xa5shape\x91\x01"),
              ==, TEC_INVALID); /* one element, but no scalar */
    CHECK_INT(READ("\x81\xa6tectum\x81\xa4seed\x84\xab__ndarray__\xc3\xa4"
                   "data\xc4\x02\7\0"
                   "\xa5"
                   "dtype\xa3<i2\xa5shape\x90"),
              ==, TEC_OK);
    CHECK(request.has_seed && request.seed == 7);
}

TEST(depth_and_counts_cost_nothing)
{
    memset(bytes, 0x91, MAX); /* lists in lists */
    memcpy(bytes, "\x81\xa1x", 3);
    CHECK_INT(decode(MAX), ==, TEC_SHAPE);
    for (int i = 0; i + 3 < MAX; i += 3) /* maps in maps */
        memcpy(bytes + i, "\x81\xa1x", 3);
    CHECK(decode(MAX) != TEC_OK);
    memset(bytes, 0xc0, MAX); /* ever more values */
    memcpy(bytes, "\x81\xa1x\xdc\xff\xff", 6);
    CHECK_INT(decode(6 + 0xffff), ==, TEC_MALFORMED);
    CHECK_INT(heap.peak, <, 8 << 20);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(every_cut_is_refused)
{
    size_t n = golden("libero_obs");
    for (size_t i = 0; i < n; i++)
        CHECK(decode(i) != TEC_OK);
    CHECK_INT(decode(n), ==, TEC_OK);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
