/* client_message.c - a robot's requests as the server reads them, the server's replies as the robot
 * does, and what a hostile one sends. */
#include "tests/tap.h"
#include "tools/client/message.h"
#include "tools/serve/reply.h"
#include "tools/serve/request.h"

#include <math.h>

enum { ROWS = 5, COLUMNS = 3, ROOM = 4096 };

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_error err;
static struct tec_request_message request;
static struct tec_client_reply reply;
static double actions[ROWS * COLUMNS];
static uint8_t bytes[ROOM];
static struct tec_buffer packed_request = {.heap = &heap}; /* what values of `request` point into */

static const struct tec_value *value_of(const char *name)
{
    for (size_t i = 0; i < request.n; i++)
        if (strcmp(request.values[i].name, name) == 0)
            return &request.values[i];
    return NULL;
}

/* Pack an observation with what `asked` says, and read it as the server does. */
static void ask(const struct tectum_value *values, size_t n, const struct tec_client_asked *asked)
{
    struct tec_client_observation seen = {.bytes = {.heap = &heap}};
    tec_arena_finish(&arena);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_client_pack_observation(&seen, values, n, &err) == TEC_OK);
    tec_client_pack_request(&packed_request, &seen, asked);
    REQUIRE(!packed_request.failed);
    enum tec_status status =
        tec_serve_request_read(&request, packed_request.data, packed_request.n, &arena, &err);
    CHECK_STR(status == TEC_OK ? "" : err.message, "");
    tec_buffer_finish(&seen.bytes);
}

TEST(a_request_is_what_the_server_reads)
{
    const uint8_t picture[12] = {1, 2, 3};
    const float state[2] = {0.5F, -1.0F};
    const double given[2 * COLUMNS] = {1, 2, 3, 4, 5, 6};
    const uint64_t seed = UINT64_MAX;
    const struct tectum_value values[] = {
        {"images/top", TECTUM_TYPE_U8, 3, {2, 2, 3}, picture, sizeof picture},
        {"state", TECTUM_TYPE_F32, 1, {2}, state, sizeof state},
        {"images/wrist", TECTUM_TYPE_U8, 3, {2, 2, 3}, picture, sizeof picture},
        {"prompt", TECTUM_TYPE_TEXT, 0, {0}, "go", 2}};
    struct tec_client_asked asked = {.ahead = {given, 2, COLUMNS, 2},
                                     .rtc = TECTUM_CLIENT_GUIDED,
                                     .left_input = "left",
                                     .delay_input = "delay",
                                     .given_input = "given",
                                     .session_id = "arm/0",
                                     .has_obs_ts = true,
                                     .obs_ts = 12345,
                                     .reset = true,
                                     .deadline_ms = 40.0,
                                     .seed = &seed};
    ask(values, 4, &asked);
    CHECK_INT(request.n, ==, 6);
    REQUIRE(value_of("images/wrist") && value_of("left") && value_of("delay") &&
            value_of("prompt"));
    CHECK(memcmp(value_of("images/top")->data, picture, sizeof picture) == 0);
    CHECK_INT(value_of("left")->rank, ==, 2);
    CHECK_INT(value_of("left")->shape[0], ==, 2);
    CHECK(memcmp(value_of("left")->data, given, sizeof given) == 0);
    CHECK(request.reset && request.wants_timing && request.has_captured);
    CHECK_INT(request.captured_ns, ==, 12345);
    CHECK(request.deadline_ms == 40.0);
    asked.rtc = TECTUM_CLIENT_GIVEN;
    ask(values, 4, &asked);
    CHECK(value_of("given") && !value_of("delay"));
    asked.ahead.rows = 0;
    ask(values, 4, &asked);
    CHECK_INT(request.n, ==, 4);
    tec_arena_finish(&arena);
    tec_buffer_finish(&packed_request);
}

TEST(values_that_contradict_themselves_are_refused)
{
    const float state[2] = {0.5F, -1.0F};
    const struct tectum_value wrong[] = {
        {NULL, TECTUM_TYPE_F32, 1, {2}, state, sizeof state},
        {"", TECTUM_TYPE_F32, 1, {2}, state, sizeof state},
        {"state", TECTUM_TYPE_F32, 1, {3}, state, sizeof state},
        {"state", TECTUM_TYPE_F32, 5, {2}, state, sizeof state},
        {"state", TECTUM_TYPE_F32, -1, {2}, state, sizeof state},
        {"state", TECTUM_TYPE_F32, 1, {-2}, state, sizeof state},
        {"state", (enum tectum_type)9, 1, {2}, state, sizeof state},
        {"state", TECTUM_TYPE_F32, 4, {INT64_MAX, 4, 4, 4}, state, sizeof state},
        {"state", TECTUM_TYPE_F32, 1, {2}, NULL, sizeof state},
        {"tectum", TECTUM_TYPE_F32, 1, {2}, state, sizeof state},
        {"images", TECTUM_TYPE_F32, 1, {2}, state, sizeof state},
        {"images/", TECTUM_TYPE_F32, 1, {2}, state, sizeof state}};
    struct tec_client_observation seen = {.bytes = {.heap = &heap}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_INT(tec_client_pack_observation(&seen, &wrong[i], 1, &err), ==, TEC_INVALID);
    CHECK_INT(tec_client_pack_observation(&seen, wrong, 65, &err), ==, TEC_INVALID);
    struct tec_heap none = {.fail_at = 1};
    struct tec_client_observation poor = {.bytes = {.heap = &none}};
    const struct tectum_value good = {"state", TECTUM_TYPE_F32, 1, {2}, state, sizeof state};
    CHECK_INT(tec_client_pack_observation(&poor, &good, 1, &err), ==, TEC_NO_MEMORY);
    tec_buffer_finish(&seen.bytes);
    CHECK_INT(atomic_load(&heap.live), ==, 0);
}

/* The server's reply into `bytes`, as its own packer makes it. */
static size_t packed(const double *values, int rows, int columns, const char *source)
{
    const struct tec_reply_timing timing = {.received = 100, .left = 700};
    const struct tec_reply r = {.actions = values,
                                .rows = rows,
                                .columns = columns,
                                .extended = true,
                                .source = source,
                                .timing = &timing};
    struct tec_reply_buffer out = {.data = bytes, .room = ROOM};
    tec_reply_pack(&out, &r);
    REQUIRE(!out.full);
    return out.n;
}

static enum tec_status read_bytes(size_t n)
{
    return tec_client_read_reply(&reply, actions, ROWS, COLUMNS, bytes, n, &err);
}

TEST(a_reply_is_read_as_it_was_packed)
{
    double values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = 0.1 * i;
    REQUIRE(read_bytes(packed(values, ROWS, COLUMNS, NULL)) == TEC_OK);
    CHECK(reply.is_reply && reply.fresh && !reply.stopped && reply.has_stamps);
    CHECK_INT(reply.rows, ==, ROWS);
    CHECK_INT(reply.columns, ==, COLUMNS);
    CHECK_INT(reply.received_ts, ==, 100);
    CHECK_INT(reply.left_ts, ==, 700);
    CHECK(memcmp(actions, values, sizeof values) == 0);
    REQUIRE(read_bytes(packed(values, 1, COLUMNS, "held")) == TEC_OK);
    CHECK(!reply.fresh && !reply.stopped);
    REQUIRE(read_bytes(packed(values, 0, COLUMNS, "stopped")) == TEC_OK);
    CHECK(!reply.fresh && reply.stopped);
    CHECK_INT(reply.rows, ==, 0);
    const struct tec_reply_text text = {.node = "talk", .reason = "eos", .text = "go", .bytes = 2};
    struct tec_reply_buffer out = {.data = bytes, .room = ROOM};
    tec_reply_pack_text(&out, &text, 0);
    REQUIRE(read_bytes(out.n) == TEC_OK);
    CHECK(!reply.is_reply);
}

TEST(a_reply_that_no_robot_may_carry_out_is_refused)
{
    double values[(ROWS + 1) * COLUMNS] = {0};
    CHECK_INT(read_bytes(packed(values, ROWS + 1, COLUMNS, NULL)), ==, TEC_SHAPE);
    CHECK(strstr(err.message, "max_rows"));
    CHECK_INT(read_bytes(packed(values, 2, COLUMNS + 1, NULL)), ==, TEC_SHAPE);
    values[4] = (double)NAN;
    CHECK_INT(read_bytes(packed(values, 2, COLUMNS, NULL)), ==, TEC_MALFORMED);
    values[4] = (double)INFINITY;
    CHECK_INT(read_bytes(packed(values, 2, COLUMNS, NULL)), ==, TEC_MALFORMED);
    values[4] = -1.5e308; /* the difference from a row of 1.5e308 is not finite */
    CHECK_INT(read_bytes(packed(values, 2, COLUMNS, NULL)), ==, TEC_MALFORMED);
    values[4] = 1e100;
    CHECK_INT(read_bytes(packed(values, 2, COLUMNS, NULL)), ==, TEC_OK);
    values[4] = 0.0;
    size_t n = packed(values, 2, COLUMNS, NULL);
    uint8_t *type = memmem(bytes, n, "<f8", 3);
    REQUIRE(type);
    type[1] = 'O';
    CHECK_INT(read_bytes(n), ==, TEC_MALFORMED);
    type[1] = 'f';
    type[2] = '4'; /* half as many bytes as there are */
    CHECK_INT(read_bytes(n), ==, TEC_MALFORMED);
}

TEST(a_reply_that_is_cut_or_changed_does_no_harm)
{
    double values[ROWS * COLUMNS] = {0};
    size_t n = packed(values, ROWS, COLUMNS, NULL);
    static uint8_t whole[ROOM];
    memcpy(whole, bytes, n);
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1); /* sanitizers see a byte behind it */
        memcpy(exact, whole, cut);
        CHECK_INT(tec_client_read_reply(&reply, actions, ROWS, COLUMNS, exact, cut, &err), !=,
                  TEC_OK);
        free(exact);
    }
    uint32_t state = 1;
    int accepted = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        memcpy(bytes, whole, n);
        for (int k = 0; k < 3; k++) {
            state = state * 1664525U + 1013904223U;
            bytes[(state >> 8) % n] = (uint8_t)(state >> 24);
        }
        enum tec_status status = read_bytes(n);
        accepted += status == TEC_OK;
        refused += status != TEC_OK;
        bool finite = true;
        for (int i = 0; status == TEC_OK && i < reply.rows * reply.columns; i++)
            finite = finite && isfinite(actions[i]);
        REQUIRE(finite);
    }
    CHECK(accepted > 100 && refused > 100);
}

TAP_MAIN
