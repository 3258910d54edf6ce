/* action_output.c - what a robot is given when its chunk is late: every on_miss, and the golden
 * cases. */
#include "graph/live/action_output.h"
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>

enum { ROWS = 8, WIDTH = 2, ACTIONS = 2 };

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_error err;

static struct tec_action_output *make(int on_miss, int limit, int decay_actions)
{
    const struct tec_action_output_options o = {.on_miss = on_miss,
                                                .limit = limit,
                                                .decay_actions = decay_actions,
                                                .actions = ACTIONS,
                                                .rows = ROWS,
                                                .width = WIDTH};
    struct tec_action_output *h = NULL;
    tec_arena_finish(&arena);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_action_output_create(&h, &o, &arena, &err) == TEC_OK);
    return h;
}

/* Action i of frame f is [v, 2 v], v = 1 + f + i / 16. */
static double chunk_at(int64_t frame, int i, int c)
{
    return (1.0 + (double)frame + (double)i / 16.0) * (double)(c + 1);
}

static struct tec_action_output_chunk chunk_of(int64_t frame, double *numbers, int rows)
{
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < WIDTH; c++)
            numbers[i * WIDTH + c] = chunk_at(frame, i, c);
    return (struct tec_action_output_chunk){
        .frame = frame, .captured_ns = 1000 + frame, .actions = numbers, .seen = 2000 + frame};
}

static struct tec_handed fresh(struct tec_action_output *h, int64_t frame)
{
    double numbers[ROWS * WIDTH];
    const struct tec_action_output_chunk chunk = chunk_of(frame, numbers, ROWS);
    return tec_action_output_fresh(h, &chunk);
}

static void late(struct tec_action_output *h, int64_t frame)
{
    double numbers[ROWS * WIDTH];
    const struct tec_action_output_chunk chunk = chunk_of(frame, numbers, ROWS);
    tec_action_output_late(h, &chunk);
}

static bool gives(const struct tec_handed *got, enum tec_action_source source, int64_t frame,
                  double first, double second)
{
    return got->source == source && got->n == ACTIONS && got->frame == frame &&
           got->captured_ns == (frame < 0 ? 0 : 1000 + frame) &&
           got->seen == (frame < 0 ? -1 : 2000 + frame) && got->actions[0] == first &&
           got->actions[1] == 2 * first && got->actions[2] == second &&
           got->actions[3] == 2 * second;
}

static bool gives_nothing(const struct tec_handed *got, enum tec_action_source source)
{
    return got->source == source && got->n == 0 && got->frame == -1;
}

TEST(before_the_first_command_there_is_none)
{
    static const int all[] = {TEC_MISS_HOLD, TEC_MISS_DECAY, TEC_MISS_LAST_CHUNK, TEC_MISS_ZEROS};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct tec_action_output *h = make(all[i], 0, 4);
        struct tec_handed got = tec_action_output_missed(h, 0);
        CHECK(gives_nothing(&got, TEC_SOURCE_NONE));
        got = fresh(h, 1);
        CHECK(gives(&got, TEC_SOURCE_FRESH, 1, chunk_at(1, 0, 0), chunk_at(1, 1, 0)));
    }
}

TEST(hold_repeats_the_last_command)
{
    struct tec_action_output *h = make(TEC_MISS_HOLD, 0, 0);
    fresh(h, 0);
    for (int frame = 1; frame < 50; frame++) {
        struct tec_handed got = tec_action_output_missed(h, frame);
        CHECK(gives(&got, TEC_SOURCE_HELD, 0, chunk_at(0, 1, 0), chunk_at(0, 1, 0)));
    }
    late(h, 40); /* knows nothing of late chunks */
    struct tec_handed got = tec_action_output_missed(h, 50);
    CHECK(gives(&got, TEC_SOURCE_HELD, 0, chunk_at(0, 1, 0), chunk_at(0, 1, 0)));
}

TEST(decay_ends_at_zero_and_begins_anew)
{
    struct tec_action_output *h = make(TEC_MISS_DECAY, 0, 4);
    fresh(h, 0);
    double c = chunk_at(0, 1, 0);
    struct tec_handed got = tec_action_output_missed(h, 1);
    CHECK(gives(&got, TEC_SOURCE_DECAYED, 0, c * 0.75, c * 0.5));
    got = tec_action_output_missed(h, 2);
    CHECK(gives(&got, TEC_SOURCE_DECAYED, 0, c * 0.25, 0.0));
    got = tec_action_output_missed(h, 3);
    CHECK(gives(&got, TEC_SOURCE_DECAYED, 0, 0.0, 0.0));
    fresh(h, 4);
    got = tec_action_output_missed(h, 5);
    CHECK(gives(&got, TEC_SOURCE_DECAYED, 4, chunk_at(4, 1, 0) * 0.75, chunk_at(4, 1, 0) * 0.5));
}

TEST(last_chunk_is_aligned_in_time)
{
    struct tec_action_output *h = make(TEC_MISS_LAST_CHUNK, 0, 0);
    fresh(h, 0);
    struct tec_handed got = tec_action_output_missed(h, 1);
    CHECK(gives(&got, TEC_SOURCE_STALE, 0, chunk_at(0, 2, 0), chunk_at(0, 3, 0)));
    late(h, 1);
    got = tec_action_output_missed(h, 2);
    CHECK(gives(&got, TEC_SOURCE_STALE, 1, chunk_at(1, 2, 0), chunk_at(1, 3, 0)));
    late(h, 0); /* older than what is known */
    got = tec_action_output_missed(h, 4);
    CHECK(gives(&got, TEC_SOURCE_STALE, 1, chunk_at(1, 6, 0), chunk_at(1, 7, 0)));
    got = tec_action_output_missed(h, 5);
    CHECK(gives(&got, TEC_SOURCE_HELD, 1, chunk_at(1, 7, 0), chunk_at(1, 7, 0)));
    got = tec_action_output_missed(h, INT64_MAX);
    CHECK(gives(&got, TEC_SOURCE_HELD, 1, chunk_at(1, 7, 0), chunk_at(1, 7, 0)));
}

/* A chunk of a node with a rate leaves again behind the rows that are over. */
static void rest(struct tec_action_output *h, int64_t frame, int over)
{
    double numbers[ROWS * WIDTH];
    struct tec_action_output_chunk chunk = chunk_of(frame, numbers, ROWS);
    for (int i = (over < ROWS ? ROWS - over : 1) * WIDTH; i < ROWS * WIDTH; i++)
        numbers[i] = numbers[i - WIDTH];
    chunk.over = over;
    tec_action_output_fresh(h, &chunk);
}

TEST(last_chunk_holds_what_no_row_was_planned_for)
{
    struct tec_action_output *h = make(TEC_MISS_LAST_CHUNK, 0, 0);
    rest(h, 0, 4);
    struct tec_handed got = tec_action_output_missed(h, 1);
    CHECK(gives(&got, TEC_SOURCE_STALE, 0, chunk_at(0, 2, 0), chunk_at(0, 3, 0)));
    got = tec_action_output_missed(h, 2);
    CHECK(gives(&got, TEC_SOURCE_HELD, 0, chunk_at(0, 3, 0), chunk_at(0, 3, 0)));
    rest(h, 3, 5);
    got = tec_action_output_missed(h, 4);
    CHECK(gives(&got, TEC_SOURCE_STALE, 3, chunk_at(3, 2, 0), chunk_at(3, 2, 0)));
    got = tec_action_output_missed(h, 5);
    CHECK(gives(&got, TEC_SOURCE_HELD, 3, chunk_at(3, 2, 0), chunk_at(3, 2, 0)));
    rest(h, 6, ROWS); /* nothing is left but its last row */
    got = tec_action_output_missed(h, 7);
    CHECK(gives(&got, TEC_SOURCE_HELD, 6, chunk_at(6, 0, 0), chunk_at(6, 0, 0)));
}

TEST(a_late_chunk_may_be_the_first_of_all)
{
    struct tec_action_output *h = make(TEC_MISS_LAST_CHUNK, 0, 0);
    struct tec_handed got = tec_action_output_missed(h, 0);
    CHECK(gives_nothing(&got, TEC_SOURCE_NONE));
    late(h, 0);
    got = tec_action_output_missed(h, 1);
    CHECK(gives(&got, TEC_SOURCE_STALE, 0, chunk_at(0, 2, 0), chunk_at(0, 3, 0)));
}

TEST(zeros_are_nobodys)
{
    struct tec_action_output *h = make(TEC_MISS_ZEROS, 0, 0);
    fresh(h, 0);
    struct tec_handed got = tec_action_output_missed(h, 1);
    CHECK(gives(&got, TEC_SOURCE_ZEROS, -1, 0.0, 0.0));
}

TEST(a_stop_lasts_until_reset)
{
    struct tec_action_output *h = make(TEC_MISS_STOP, 0, 0);
    fresh(h, 0);
    struct tec_handed got = tec_action_output_missed(h, 1);
    CHECK(gives_nothing(&got, TEC_SOURCE_STOPPED));
    got = fresh(h, 2);
    CHECK(gives_nothing(&got, TEC_SOURCE_STOPPED));
    tec_action_output_reset(h);
    got = fresh(h, 3);
    CHECK(gives(&got, TEC_SOURCE_FRESH, 3, chunk_at(3, 0, 0), chunk_at(3, 1, 0)));
    got = tec_action_output_missed(h, 4);
    CHECK(gives_nothing(&got, TEC_SOURCE_STOPPED));
}

TEST(a_limit_bridges_so_many_in_a_row)
{
    struct tec_action_output *h = make(TEC_MISS_HOLD, 2, 0);
    fresh(h, 0);
    for (int round = 0; round < 3; round++) {
        CHECK_INT(tec_action_output_missed(h, 1).source, ==, TEC_SOURCE_HELD);
        CHECK_INT(tec_action_output_missed(h, 2).source, ==, TEC_SOURCE_HELD);
        CHECK_INT(fresh(h, 3).source, ==, TEC_SOURCE_FRESH); /* in time: counted from 0 again */
    }
    CHECK_INT(tec_action_output_missed(h, 4).source, ==, TEC_SOURCE_HELD);
    CHECK_INT(tec_action_output_missed(h, 5).source, ==, TEC_SOURCE_HELD);
    CHECK_INT(tec_action_output_missed(h, 6).source, ==, TEC_SOURCE_STOPPED);
    CHECK_INT(fresh(h, 7).source, ==, TEC_SOURCE_STOPPED);
    tec_action_output_reset(h);
    struct tec_handed got = tec_action_output_missed(h, 8);
    CHECK(gives(&got, TEC_SOURCE_HELD, 3, chunk_at(3, 1, 0), chunk_at(3, 1, 0)));
}

/* A frame that leaves the action out is no miss, but the robot goes on without actions of its own
 * as in a missed one: both are bridged by one limit. */
TEST(frames_that_leave_actions_out_are_bridged_by_the_limit)
{
    struct tec_action_output *h = make(TEC_MISS_HOLD, 2, 0);
    struct tec_action_output_chunk out = {.left_out = true};
    struct tec_handed got;
    fresh(h, 0);
    for (int round = 0; round < 3; round++) {
        out.frame = 1;
        got = tec_action_output_fresh(h, &out);
        CHECK(got.source == TEC_SOURCE_HELD && got.left_out);
        CHECK_INT(tec_action_output_missed(h, 2).source, ==, TEC_SOURCE_HELD);
        CHECK_INT(fresh(h, 3).source, ==, TEC_SOURCE_FRESH);
    }
    for (out.frame = 4; out.frame < 6; out.frame++)
        CHECK_INT(tec_action_output_fresh(h, &out).source, ==, TEC_SOURCE_HELD);
    got = tec_action_output_fresh(h, &out);
    CHECK(got.source == TEC_SOURCE_STOPPED && got.n == 0 && got.left_out);
    CHECK_INT(fresh(h, 7).source, ==, TEC_SOURCE_STOPPED);
    tec_action_output_reset(h);
    CHECK_INT(fresh(h, 8).source, ==, TEC_SOURCE_FRESH);
}

/* --- numbers that are not ----------------------------------------------------------------------
 */

static struct tec_handed bad(struct tec_action_output *h, int64_t frame, int at, double number,
                             bool slow)
{
    double numbers[ROWS * WIDTH];
    const struct tec_action_output_chunk chunk = chunk_of(frame, numbers, ROWS);
    numbers[at] = number;
    if (!slow)
        return tec_action_output_fresh(h, &chunk);
    tec_action_output_late(h, &chunk);
    return tec_action_output_missed(h, frame + 1);
}

TEST(what_is_not_finite_is_a_miss)
{
    static const double wide[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (int i = 0; i < 3; i++) {
        struct tec_action_output *h = make(TEC_MISS_HOLD, 2, 0);
        struct tec_handed got = bad(h, 0, 1, wide[i], false);
        CHECK(gives_nothing(&got, TEC_SOURCE_NONE));
        fresh(h, 1);
        got = bad(h, 2, 3, wide[i], false);
        CHECK(gives(&got, TEC_SOURCE_HELD, 1, chunk_at(1, 1, 0), chunk_at(1, 1, 0)));
        bad(h, 3, 0, wide[i], false);
        CHECK_INT(bad(h, 4, 0, wide[i], false).source, ==, TEC_SOURCE_STOPPED); /* and counts */
    }
}

TEST(a_chunk_is_worth_its_finite_rows)
{
    struct tec_action_output *h = make(TEC_MISS_LAST_CHUNK, 0, 0);
    struct tec_handed got = bad(h, 0, 5 * WIDTH, (double)NAN, false); /* rows 0 to 4 are good */
    CHECK(gives(&got, TEC_SOURCE_FRESH, 0, chunk_at(0, 0, 0), chunk_at(0, 1, 0)));
    got = tec_action_output_missed(h, 1);
    CHECK(gives(&got, TEC_SOURCE_STALE, 0, chunk_at(0, 2, 0), chunk_at(0, 3, 0)));
    got = tec_action_output_missed(h, 2);
    CHECK(gives(&got, TEC_SOURCE_STALE, 0, chunk_at(0, 4, 0), chunk_at(0, 4, 0)));
    got = bad(h, 3, 0, (double)INFINITY, true); /* nothing of it is good: the older one stays */
    CHECK(gives(&got, TEC_SOURCE_HELD, 0, chunk_at(0, 4, 0), chunk_at(0, 4, 0)));
    got = bad(h, 5, 3 * WIDTH + 1, (double)INFINITY, true);
    CHECK(gives(&got, TEC_SOURCE_STALE, 5, chunk_at(5, 2, 0), chunk_at(5, 2, 0)));
}

TEST(the_largest_numbers_stay_finite)
{
    struct tec_action_output *h = make(TEC_MISS_DECAY, 0, 1000000);
    fresh(h, 0);
    for (int64_t frame = 1; frame < 100; frame++) {
        struct tec_handed got = bad(h, frame, (int)(frame % ROWS) * WIDTH, 1.7e308, false);
        for (int i = 0; i < got.n * WIDTH; i++)
            CHECK(isfinite(got.actions[i]));
        got = tec_action_output_missed(h, frame);
        for (int i = 0; i < got.n * WIDTH; i++)
            CHECK(isfinite(got.actions[i]));
    }
}

TEST(wrong_sizes_are_refused)
{
    const struct tec_action_output_options good = {.on_miss = TEC_MISS_DECAY,
                                                   .decay_actions = 1,
                                                   .actions = ACTIONS,
                                                   .rows = ROWS,
                                                   .width = WIDTH};
    struct tec_action_output *h;
    tec_arena_finish(&arena);
    tec_arena_init(&arena, &heap);
    struct tec_action_output_options o = good;
    o.actions = ROWS + 1;
    CHECK_INT(tec_action_output_create(&h, &o, &arena, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "9 actions") != NULL);
    o.actions = 0;
    CHECK_INT(tec_action_output_create(&h, &o, &arena, &err), ==, TEC_INVALID);
    o = good;
    o.width = 0;
    CHECK_INT(tec_action_output_create(&h, &o, &arena, &err), ==, TEC_INVALID);
    o = good;
    o.decay_actions = 0;
    CHECK_INT(tec_action_output_create(&h, &o, &arena, &err), ==, TEC_INVALID);
    CHECK_STR(tec_action_source_word(TEC_SOURCE_STALE), "stale");
    CHECK_STR(tec_action_source_word(TEC_SOURCES), "?");
}

/* --- the golden cases, handed out by hand -------------------------------------------------------
 */

struct golden {
    const char *name;
    int on_miss, limit, decay_actions;
};

/* As their pipeline.lua say; all have hard { ms = 18 } and chunks of 10. */
static const struct golden goldens[] = {
    {"miss_hold", TEC_MISS_HOLD, 0, 0},   {"miss_hold_limit", TEC_MISS_HOLD, 2, 0},
    {"miss_decay", TEC_MISS_DECAY, 0, 8}, {"miss_last_chunk", TEC_MISS_LAST_CHUNK, 0, 0},
    {"miss_zeros", TEC_MISS_ZEROS, 0, 0}, {"miss_stop", TEC_MISS_STOP, 0, 0},
};

struct replay {
    struct tec_action_output *h;
    int rows;
    int64_t reset;   /* frame */
    int64_t in_time; /* frame whose chunk has just been released in time, -1 = none */
    int handed, wrong;
};

static bool same(const struct tec_handed *got, json_t *event)
{
    json_t *rows = json_object_get(event, "actions"), *row;
    size_t i;
    bool all = strcmp(tec_action_source_word(got->source),
                      json_string_value(json_object_get(event, "source"))) == 0 &&
               (size_t)got->n == json_array_size(rows);
    json_array_foreach(rows, i, row)
    {
        for (size_t c = 0; all && c < WIDTH; c++) {
            double want = json_number_value(json_array_get(row, c));
            all = fabs(got->actions[i * WIDTH + c] - want) <= 1e-6 * fmax(1.0, fabs(want));
        }
    }
    return all;
}

static void replay_event(struct replay *r, json_t *event)
{
    double numbers[64 * WIDTH];
    const char *kind = json_string_value(json_object_get(event, "event"));
    int64_t frame = json_integer_value(json_object_get(event, "frame"));
    const struct tec_action_output_chunk chunk = chunk_of(frame, numbers, r->rows);
    if (strcmp(kind, "release") == 0) {
        bool slow = json_is_true(json_object_get(event, "late"));
        r->in_time = slow ? -1 : frame;
        if (slow)
            tec_action_output_late(r->h, &chunk);
    } else if (strcmp(kind, "handout") == 0) {
        if (frame == r->reset)
            tec_action_output_reset(r->h);
        struct tec_handed got = frame == r->in_time ? tec_action_output_fresh(r->h, &chunk)
                                                    : tec_action_output_missed(r->h, frame);
        r->wrong += !same(&got, event);
        r->handed++;
    }
}

static void replay_golden(const struct golden *g)
{
    char path[200], line[4096];
    json_t *reset;
    snprintf(path, sizeof path, "tests/golden/schedules/%s/scenario.json", g->name);
    json_t *scenario = json_load_file(path, 0, NULL);
    json_t *handout = json_object_get(scenario, "handout");
    REQUIRE((reset = json_array_get(json_object_get(scenario, "reset"), 0)) != NULL);
    const struct tec_action_output_options o = {
        .on_miss = g->on_miss,
        .limit = g->limit,
        .decay_actions = g->decay_actions,
        .actions = (int)json_integer_value(json_object_get(handout, "actions")),
        .rows = 10,
        .width = (int)json_integer_value(json_object_get(handout, "dims"))};
    struct replay r = {.rows = 10, .reset = json_integer_value(reset), .in_time = -1};
    json_decref(scenario);
    tec_arena_finish(&arena);
    tec_arena_init(&arena, &heap);
    REQUIRE(o.width == WIDTH && tec_action_output_create(&r.h, &o, &arena, &err) == TEC_OK);
    snprintf(path, sizeof path, "tests/golden/schedules/%s/expected.jsonl", g->name);
    FILE *in = fopen(path, "re");
    REQUIRE(in);
    while (fgets(line, sizeof line, in)) {
        json_t *event = json_loads(line, 0, NULL);
        replay_event(&r, event);
        json_decref(event);
    }
    fclose(in);
    if (r.wrong)
        fprintf(stderr, "# %s: %d of %d\n", g->name, r.wrong, r.handed);
    CHECK_INT(r.handed, ==, 22);
    CHECK_INT(r.wrong, ==, 0);
}

TEST(golden_misses)
{
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++)
        replay_golden(&goldens[i]);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
