/* tectum_actions.c - tests of the public interface over several action nodes: each has its chunk,
 * its deadline and its last command; and actions on an earlier frame's prefix. */
#include "tectum.h"

#include "tests/tap.h"

#include <string.h>

enum { SIDE = 32, PIXELS = SIDE * SIDE * 3, ROOM = 64 * 32 };
static const int64_t patience = 120000000000;
static struct tectum_error err;

/* `set`: PATH=VALUE, or NULL. */
static struct tectum *open_under(const char *pipeline, const char *policy, const char *set)
{
    struct tectum *t = NULL;
    const struct tectum_options options = {.pipeline = pipeline,
                                           .root = ".",
                                           .policy = policy,
                                           .set = &set,
                                           .n_set = set != NULL,
                                           .threads = 1,
                                           .seed = 5,
                                           .random_weights = 1,
                                           .size = "tiny",
                                           .actions = 2};
    enum tectum_status status = tectum_open(&t, &options, &err);
    if (status != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TECTUM_OK);
    return t;
}

static struct tectum *open_graph(const char *pipeline)
{
    return open_under(pipeline, NULL, NULL);
}

static int64_t observe(struct tectum *t, int i)
{
    static uint8_t picture[PIXELS];
    static float state[8];
    static const int32_t ids[] = {5, 6, 7};
    int64_t number = -1;
    for (int p = 0; p < PIXELS; p++)
        picture[p] = (uint8_t)(p * (i + 3) / 64);
    const struct tectum_value v[] = {
        {"observation/image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, picture, PIXELS},
        {"observation/wrist_image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, picture, PIXELS},
        {"observation/state", TECTUM_TYPE_F32, 1, {8}, state, sizeof state},
        {"prompt#ids", TECTUM_TYPE_I32, 1, {3}, ids, sizeof ids}};
    enum tectum_status status = tectum_submit(t, v, 4, 0, &number, &err);
    if (status != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TECTUM_OK);
    return number;
}

TEST(each_action_node_has_a_chunk)
{
    static double first[ROOM], second[ROOM];
    struct tectum *t = open_graph("pipelines/graphs/g04_two_heads.lua");
    struct tectum_chunk a, b;
    CHECK_STR(tectum_action(t, 0), "act");
    CHECK_STR(tectum_action(t, 1), "act_early");
    CHECK(tectum_action(t, 2) == NULL && tectum_action(t, -1) == NULL);
    CHECK_INT(tectum_wait_for(t, "none", 0, 0, first, ROOM, &a, &err), ==, TECTUM_NOT_FOUND);
    int64_t number = observe(t, 0);
    REQUIRE(tectum_wait_for(t, "act_early", number, patience, second, ROOM, &b, &err) == TECTUM_OK);
    REQUIRE(tectum_wait(t, number, patience, first, ROOM, &a, &err) == TECTUM_OK);
    CHECK(a.observation == number && b.observation == number);
    CHECK(b.released_ns < a.released_ns);
    CHECK_INT(a.rows, ==, tectum_rows(t));
    CHECK_INT(b.rows, ==, tectum_rows(t));
    CHECK(memcmp(first, second, (size_t)(a.rows * a.columns) * sizeof *first) != 0);
    tectum_close(&t);
}

TEST(each_action_node_is_handed_out)
{
    static double actions[ROOM];
    struct tectum *t = open_graph("pipelines/graphs/g04_two_heads.lua");
    struct tectum_handed handed;
    int64_t later = tectum_now() + patience;
    CHECK_INT(tectum_handout_of(t, "act_early", -1, later, actions, ROOM, &handed, &err), ==,
              TECTUM_INVALID);
    CHECK_INT(tectum_handout_of(t, "none", 0, later, actions, ROOM, &handed, &err), ==,
              TECTUM_NOT_FOUND);
    int64_t number = observe(t, 0);
    for (int i = 0; i < 2; i++) {
        REQUIRE(tectum_handout_of(t, tectum_action(t, i), number, later, actions, ROOM, &handed,
                                  &err) == TECTUM_OK);
        CHECK_INT(handed.source, ==, TECTUM_SOURCE_FRESH);
        CHECK_INT(handed.rows, ==, 2);
        CHECK_INT(handed.observation, ==, number);
    }
    /* A tick without an observation is one tick for both: each holds its own last command. */
    for (int i = 0; i < 2; i++) {
        REQUIRE(tectum_handout_of(t, tectum_action(t, i), -1, tectum_now() + 1, actions, ROOM,
                                  &handed, &err) == TECTUM_OK);
        CHECK_INT(handed.source, ==, TECTUM_SOURCE_HELD);
    }
    CHECK_INT(observe(t, 1), ==, 2);
    tectum_close(&t);
}

TEST(actions_of_an_earlier_prefix_answer_their_frame)
{
    static double actions[ROOM];
    struct tectum *t = open_graph("pipelines/graphs/g09_two_rates.lua");
    struct tectum_chunk chunk;
    for (int i = 0; i < 4; i++) {
        int64_t number = observe(t, i);
        REQUIRE(tectum_wait(t, number, patience, actions, ROOM, &chunk, &err) == TECTUM_OK);
        CHECK_INT(chunk.observation, ==, i / 2 * 2);
        CHECK_INT(chunk.rows, ==, tectum_rows(t));
    }
    tectum_close(&t);
}

TEST(a_chunk_goes_on_where_its_node_does_not_run)
{
    static double whole[ROOM], rest[ROOM];
    struct tectum *t = open_graph("tests/pipelines/graphs/action_rate.lua");
    struct tectum_chunk chunk;
    for (int i = 0; i < 6; i += 2) {
        int64_t number = observe(t, i);
        REQUIRE(tectum_wait(t, number, patience, whole, ROOM, &chunk, &err) == TECTUM_OK);
        CHECK_INT(chunk.observation, ==, number);
        size_t n = (size_t)chunk.rows * (size_t)chunk.columns, over = 2 * (size_t)chunk.columns;
        number = observe(t, i + 1);
        REQUIRE(tectum_wait(t, number, patience, rest, ROOM, &chunk, &err) == TECTUM_OK);
        CHECK_INT(chunk.observation, ==, number - 1);
        CHECK(memcmp(rest, whole + over, (n - over) * sizeof *rest) == 0);
        CHECK(memcmp(rest, whole, (n - over) * sizeof *rest) != 0);
    }
    tectum_close(&t);
}

/* A policy leaves `act` out of each third frame: who waits is told, and the robot is given what
 * on_miss says. */
TEST(an_action_that_is_left_out_is_no_miss)
{
    static double actions[ROOM];
    struct tectum *t = open_under("pipelines/graphs/g16_action_may_be_skipped.lua",
                                  "tests/policies/left_out_policy.lua", NULL);
    struct tectum_chunk chunk;
    struct tectum_handed handed;
    for (int i = 0; i < 7; i++) {
        bool left_out = i % 3 == 0;
        int64_t number = observe(t, i);
        REQUIRE(tectum_wait(t, number, patience, actions, ROOM, &chunk, &err) == TECTUM_OK);
        CHECK_INT(chunk.observation, ==, number);
        CHECK_INT(chunk.rows, ==, left_out ? 0 : tectum_rows(t));
        CHECK_STR(chunk.reason, left_out ? "left out" : "");
        CHECK(chunk.released_ns >= chunk.captured_ns && (!left_out || !chunk.missed));
        REQUIRE(tectum_handout(t, number, tectum_now() + patience, actions, ROOM, &handed, &err) ==
                TECTUM_OK);
        CHECK_INT(handed.left_out, ==, left_out);
        CHECK_INT(handed.source, ==,
                  !left_out ? TECTUM_SOURCE_FRESH
                  : i       ? TECTUM_SOURCE_HELD
                            : TECTUM_SOURCE_NONE);
        CHECK_INT(handed.rows, ==, left_out && !i ? 0 : 2);
    }
    tectum_close(&t);
}

/* A chunk that came late, and that nobody had looked at when the next frame left the action out, is
 * what that frame's robot goes on with. */
TEST(a_late_chunk_serves_a_frame_that_leaves_the_action_out)
{
    static double actions[ROOM];
    struct tectum *t =
        open_under("pipelines/graphs/g16_action_may_be_skipped.lua",
                   "tests/policies/left_out_policy.lua", "nodes.act.deadline.on_miss=last_chunk");
    struct tectum_chunk chunk;
    struct tectum_handed handed;
    int64_t number[4];
    for (int i = 0; i < 4; i++) {
        number[i] = observe(t, i);
        int64_t by_ns = i == 3 ? tectum_now() + patience : 1; /* 1: long past */
        if (i > 0 && i < 3) /* of the limit of three in a row the third is the frame in question */
            REQUIRE(tectum_handout(t, number[i], by_ns, actions, ROOM, &handed, &err) == TECTUM_OK);
        REQUIRE(tectum_wait(t, number[i], patience, actions, ROOM, &chunk, &err) == TECTUM_OK);
        if (i == 3)
            REQUIRE(tectum_handout(t, number[i], by_ns, actions, ROOM, &handed, &err) == TECTUM_OK);
    }
    CHECK(handed.left_out);
    CHECK_INT(handed.observation, ==, number[2]);
    tectum_close(&t);
}

TAP_MAIN
