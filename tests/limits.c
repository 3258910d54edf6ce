/* limits.c - limits of commands: what is beyond is clipped, held or stops the robot, and is told.
 */
#include "graph/live/action_output.h"
#include "graph/transform/observer.h"
#include "tests/tap.h"
#include "tests/transform.h"

#include <math.h>

enum { ROWS = 4, COLUMNS = 2 };

static struct tec_arena arena;

static struct tec_limits limits_of(const char *text)
{
    struct tec_limits l;
    bool off = false;
    json_t *value = json(text);
    REQUIRE(tec_limits_parse(&l, &off, value, COLUMNS, "here", &arena, &err) == TEC_OK);
    json_decref(value);
    return l;
}

TEST(limits_are_read)
{
    struct tec_limits l;
    bool off = true;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_limits_parse(&l, &off, NULL, COLUMNS, "here", &arena, &err) == TEC_OK);
    CHECK(!off && !l.min && !l.max && !l.max_step && l.on == TEC_LIMIT_CLIP);
    REQUIRE(tec_limits_parse(&l, &off, json_false(), COLUMNS, "here", &arena, &err) == TEC_OK);
    CHECK(off);
    l = limits_of("{'min':-2,'max':[1,false],'max_step':0.5,'on':'stop'}");
    CHECK(l.min[0] == -2.0 && l.min[1] == -2.0 && l.max[0] == 1.0 && isinf(l.max[1]));
    CHECK(l.max_step[1] == 0.5 && l.on == TEC_LIMIT_STOP);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(limits_keep_a_command)
{
    const double before[COLUMNS] = {0.0, 0.0};
    double x[COLUMNS] = {3.0, -0.25}, y[COLUMNS] = {(double)NAN, HUGE_VAL};
    struct tec_beyond b = {0};
    char text[160];
    tec_arena_init(&arena, &heap);
    const struct tec_limits l = limits_of("{'min':-1,'max':1,'max_step':[false,0.2]}");
    CHECK(tec_limits_keep(&l, 4, before, x, &b));
    CHECK(x[0] == 1.0 && x[1] == -0.2);
    CHECK_INT(b.n, ==, 2);
    tec_beyond_text(text, sizeof text, &b);
    CHECK_STR(text, "2 values beyond the robot's limits, clipped: row 5, column 1 is 3, above 1");
    b = (struct tec_beyond){0};
    CHECK(!tec_limits_keep(&l, 0, before, x, &b) && b.n == 0); /* held once is held */
    CHECK(!tec_limits_keep(&l, 0, before, y, &b) && isnan(y[0]) && isinf(y[1]));
    x[0] = 0.0, x[1] = 0.5;
    CHECK(tec_limits_keep(&l, 0, before, x, &b));
    tec_beyond_text(text, sizeof text, &b);
    CHECK_STR(text, "1 value beyond the robot's limits, clipped: row 1, column 2 changes by 0.5, "
                    "more than 0.2");
    x[1] = 0.5;
    CHECK(!tec_limits_keep(&l, 0, NULL, x, &b)); /* no command before: no step */
    tec_arena_finish(&arena);
}

/* Every convention and mode: the bound is what its own formula makes of the end of the reach. */
TEST(statistics_are_limits)
{
    static const double mean[COLUMNS] = {1, 0}, std[COLUMNS] = {2, 0.1}, q01[COLUMNS] = {-1, 0},
                        q99[COLUMNS] = {1, 10}, min[COLUMNS] = {-50, 0}, max[COLUMNS] = {2, 10};
    struct tec_norm n = {.mode = TEC_NORM_QUANTILE, .n = 2, .q01 = q01, .q99 = q99};
    struct tec_limits l;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_limits_trained(&l, &n, COLUMNS, TEC_LIMIT_HOLD, &arena, &err) == TEC_OK);
    CHECK(l.min[0] == -5.0 && l.max[0] == 5.0 && l.min[1] == -20.0 && l.max[1] == 30.0);
    CHECK(l.on == TEC_LIMIT_HOLD && !l.max_step);
    n.min = min, n.max = max; /* a command of the training data is within them */
    REQUIRE(tec_limits_trained(&l, &n, COLUMNS, TEC_LIMIT_CLIP, &arena, &err) == TEC_OK);
    CHECK(l.min[0] == -50.0 && l.max[0] == 5.0);
    n = (struct tec_norm){.mode = TEC_NORM_MEAN_STD, .n = 2, .mean = mean, .std = std};
    REQUIRE(tec_limits_trained(&l, &n, COLUMNS, TEC_LIMIT_CLIP, &arena, &err) == TEC_OK);
    CHECK(l.min[0] == -19.0 && l.max[0] == 21.0 && l.max[1] == 1.0);
    n = (struct tec_norm){
        .mode = TEC_NORM_MIN_MAX, .convention = TEC_NORM_DATASET, .n = 2, .min = min, .max = max};
    REQUIRE(tec_limits_trained(&l, &n, COLUMNS, TEC_LIMIT_CLIP, &arena, &err) == TEC_OK);
    CHECK(l.min[1] == -10.0 && l.max[1] == 20.0);
    n.mode = TEC_NORM_NONE;
    REQUIRE(tec_limits_trained(&l, &n, COLUMNS, TEC_LIMIT_CLIP, &arena, &err) == TEC_OK);
    CHECK(!l.min && !l.max);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* --- what leaves -------------------------------------------------------------------------------
 */

static struct tec_action_output *make(const struct tec_limits *limits, int on_miss, int limit)
{
    const struct tec_action_output_options o = {.on_miss = on_miss,
                                                .limit = limit,
                                                .decay_actions = 2,
                                                .actions = 2,
                                                .rows = ROWS,
                                                .width = COLUMNS,
                                                .limits = limits};
    struct tec_action_output *h = NULL;
    REQUIRE(tec_action_output_create(&h, &o, &arena, &err) == TEC_OK);
    return h;
}

/* A chunk whose rows are all `value`. */
static struct tec_handed give(struct tec_action_output *h, int64_t frame, double value,
                              const struct tec_beyond *beyond)
{
    double numbers[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        numbers[i] = value;
    const struct tec_action_output_chunk chunk = {.frame = frame,
                                                  .actions = numbers,
                                                  .seen = frame,
                                                  .beyond =
                                                      beyond ? *beyond : (struct tec_beyond){0}};
    return tec_action_output_fresh(h, &chunk);
}

TEST(the_step_to_a_chunk_is_limited)
{
    tec_arena_init(&arena, &heap);
    const struct tec_limits l = limits_of("{'max_step':0.25}");
    struct tec_action_output *h = make(&l, TEC_MISS_HOLD, 0);
    struct tec_handed got = give(h, 0, 1.0, NULL);
    CHECK(got.source == TEC_SOURCE_FRESH && !got.moved && got.actions[0] == 1.0);
    got = give(h, 1, 2.0, NULL);
    CHECK(got.source == TEC_SOURCE_FRESH && got.moved);
    CHECK(got.actions[0] == 1.25 && got.actions[2] == 1.5);
    CHECK(got.chunk[4] == 1.75 && got.chunk[6] == 2.0); /* to the end of the chunk */
    CHECK_INT(got.beyond.n, ==, 6);                     /* the last row is a step away */
    CHECK(got.beyond.kind == TEC_LIMIT_STEP && got.beyond.row == 0);
    got = give(h, 2, 1.6, NULL);
    CHECK(!got.moved && got.beyond.n == 0 && got.actions[0] == 1.6);
    tec_arena_finish(&arena);
}

TEST(a_step_counts_from_the_row_carried_out)
{
    double numbers[ROWS * COLUMNS] = {0, 0, 1, 1, 2, 2, 3, 3};
    const struct tec_action_output_chunk chunk = {.actions = numbers};
    tec_arena_init(&arena, &heap);
    const struct tec_limits l = limits_of("{'max_step':1}");
    const struct tec_action_output_options o = {
        .actions = ROWS, .rows = ROWS, .width = COLUMNS, .executed = 2, .limits = &l};
    struct tec_action_output *h = NULL;
    REQUIRE(tec_action_output_create(&h, &o, &arena, &err) == TEC_OK);
    CHECK(tec_action_output_fresh(h, &chunk).beyond.n == 0);
    CHECK(give(h, 1, 1.5, NULL).beyond.n == 0); /* half a step from row 2 */
    tec_arena_finish(&arena);
}

TEST(a_chunk_beyond_is_held_or_stops)
{
    const struct tec_beyond hold = {.n = 3, .on = TEC_LIMIT_HOLD};
    const struct tec_beyond stop = {.n = 1, .on = TEC_LIMIT_STOP};
    tec_arena_init(&arena, &heap);
    struct tec_action_output *h = make(NULL, TEC_MISS_ZEROS, 2);
    CHECK(give(h, 0, 9.0, &hold).source == TEC_SOURCE_NONE); /* nothing to hold yet */
    tec_action_output_reset(h);
    CHECK(give(h, 1, 1.0, NULL).source == TEC_SOURCE_FRESH);
    struct tec_handed got = give(h, 2, 9.0, &hold); /* whatever on_miss says */
    CHECK(got.source == TEC_SOURCE_HELD && got.actions[0] == 1.0 && got.n == 2);
    CHECK_INT(got.beyond.n, ==, 3);
    CHECK(give(h, 3, 9.0, &hold).source == TEC_SOURCE_HELD);
    CHECK(give(h, 4, 9.0, &hold).source == TEC_SOURCE_STOPPED); /* limit = 2 */
    CHECK(give(h, 5, 1.0, NULL).source == TEC_SOURCE_STOPPED);
    tec_action_output_reset(h);
    CHECK(give(h, 6, 1.0, NULL).source == TEC_SOURCE_FRESH);
    CHECK(give(h, 7, 9.0, &stop).source == TEC_SOURCE_STOPPED);
    CHECK(give(h, 8, 1.0, NULL).source == TEC_SOURCE_STOPPED);
    tec_arena_finish(&arena);
}

TEST(a_step_too_large_is_held_or_stops)
{
    tec_arena_init(&arena, &heap);
    const struct tec_limits l = limits_of("{'max_step':0.25,'on':'hold'}");
    struct tec_action_output *h = make(&l, TEC_MISS_LAST_CHUNK, 0);
    CHECK(give(h, 0, 1.0, NULL).source == TEC_SOURCE_FRESH);
    struct tec_handed got = give(h, 1, 2.0, NULL);
    CHECK(got.source == TEC_SOURCE_HELD && got.actions[0] == 1.0);
    got = tec_action_output_missed(h, 2); /* the chunk that was refused is not the newest */
    CHECK(got.actions[0] == 1.0);
    double numbers[ROWS * COLUMNS] = {2, 2, 2, 2, 2, 2, 2, 2};
    const struct tec_action_output_chunk chunk = {
        .frame = 3, .actions = numbers, .seen = 3, .beyond = {.n = 1, .on = TEC_LIMIT_HOLD}};
    tec_action_output_late(h, &chunk); /* nor when it comes late */
    CHECK(tec_action_output_missed(h, 4).frame == 0);
    tec_arena_finish(&arena);
}

TEST(substitutes_are_within_the_limits)
{
    tec_arena_init(&arena, &heap);
    const struct tec_limits l = limits_of("{'min':0.5,'max_step':0.25,'on':'stop'}");
    struct tec_action_output *h = make(&l, TEC_MISS_ZEROS, 0);
    CHECK(give(h, 0, 1.0, NULL).source == TEC_SOURCE_FRESH);
    struct tec_handed got = tec_action_output_missed(h, 1);
    CHECK(got.source == TEC_SOURCE_ZEROS && got.actions[0] == 0.75 && got.actions[2] == 0.5);
    CHECK(tec_action_output_missed(h, 2).actions[0] == 0.5);
    tec_arena_finish(&arena);
}

/* --- the robot's way ---------------------------------------------------------------------------
 */

/* One row of two columns through an observer; q01 = -1, q99 = 1. */
static int act(const char *limits, const float *actions, double *out, struct tec_beyond *beyond)
{
    static const char *const slots[] = {"a", "b", "c"};
    static const double low[] = {-1, -1, -1, -1}, high[] = {1, 1, 1, 1}, state[4] = {0};
    const struct tec_observer_needs needs = {
        .slots = slots,
        .n_slots = 3,
        .image_h = 4,
        .image_w = 4,
        .state_width = 4,
        .action_width = 2,
        .state_norm = {.mode = TEC_NORM_QUANTILE, .n = 4, .q01 = low, .q99 = high},
        .action_norm = {.mode = TEC_NORM_QUANTILE, .n = 2, .q01 = low, .q99 = high}};
    struct tec_robot *robot = NULL;
    struct tec_observer *o = NULL;
    char text[200];
    tec_arena_init(&arena, &heap);
    snprintf(text, sizeof text, "{'actions':{'size':2%s%s}}", limits ? ",'limits':" : "",
             limits ? limits : "");
    json_t *base = json("{" SMALL "}"), *over = json(text);
    json_object_update(base, over);
    REQUIRE(tec_robot_parse(&robot, base, NULL, "r.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_observer_create(&o, robot, &needs, &heap, &err) == TEC_OK);
    int rows = tec_robot_act(o, actions, 2, state, out, beyond);
    json_decref(base);
    json_decref(over);
    tec_observer_destroy(o);
    tec_arena_finish(&arena);
    return rows;
}

TEST(a_robot_is_limited_by_its_statistics)
{
    const float normal[4] = {4.9F, -4.9F, 1, 1}, huge[4] = {0, 0, 1e6F, 0};
    const float infinite[4] = {0, 0, INFINITY, 0};
    double out[4];
    struct tec_beyond b;
    char text[160];
    CHECK_INT(act(NULL, normal, out, &b), ==, 2);
    CHECK(b.n == 0 && out[0] > 4.8);
    CHECK_INT(act(NULL, huge, out, &b), ==, 2);
    CHECK(b.n == 1 && b.trained && out[2] == 5.0);
    tec_beyond_text(text, sizeof text, &b);
    CHECK(strstr(text, "row 2, column 1 is 1e+06, above 5 of the statistics") != NULL);
    CHECK_INT(act(NULL, infinite, out, &b), ==, 1); /* no number: as without limits */
    CHECK_INT(act("false", huge, out, &b), ==, 2);
    CHECK(b.n == 0 && out[2] > 9e5);
    CHECK_INT(act("{'max':100}", huge, out, &b), ==, 2); /* its own in place of them */
    CHECK(b.n == 1 && !b.trained && out[2] == 100.0);
    CHECK_INT(act("{'on':'stop'}", huge, out, &b), ==, 0);
    CHECK(tec_beyond_refused(&b));
    CHECK_INT(act("{'max_step':0.5,'on':'hold'}", normal, out, &b), ==, 0);
    CHECK(b.kind == TEC_LIMIT_STEP && b.on == TEC_LIMIT_HOLD);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
