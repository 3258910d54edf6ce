/* tectum_ring.c - tests of the public interface over a ring: which action is given when, and what
 * happens to actions that end early or are dropped. */
#include "tectum.h"

#include "tests/tap.h"
#include "tools/api/live.h"

#include <stdlib.h>
#include <unistd.h>

static const int64_t patience = 120000000000;
static struct tectum_error err;

enum { STAGES = 7, EDGE = 28 };

static struct tectum *open_ring_every(int period_ms, const char *set)
{
    struct tectum *t = NULL;
    char period[40], deadline[40];
    const char *const sets[] = {period, deadline, set};
    snprintf(period, sizeof period, "frame.period_ms=%d", period_ms);
    snprintf(deadline, sizeof deadline, "nodes.advance.deadline.ms=%d", period_ms);
    const struct tectum_options o = {.pipeline = "tests/pipelines/ring.lua",
                                     .root = ".",
                                     .random_weights = 1,
                                     .size = "tiny",
                                     .threads = 1,
                                     .seed = 6,
                                     .set = sets,
                                     .n_set = set ? 3 : 2};
    if (tectum_open(&t, &o, &err) != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(t != NULL);
    return t;
}

static struct tectum *open_ring(const char *set)
{
    return open_ring_every(20, set);
}

static int64_t submit_ring(struct tectum *t, int i, int side, int tokens, int64_t captured_ns)
{
    static uint8_t picture[EDGE * EDGE * 3];
    static int ids[32];
    int64_t number = -1;
    memset(picture, 40 * i, sizeof picture);
    for (int k = 0; k < 32; k++)
        ids[k] = 2 + (5 * i + k) % 90;
    const struct tectum_value v[2] = {
        {"cam", TECTUM_TYPE_U8, 3, {side, EDGE, 3}, picture, (size_t)side * EDGE * 3},
        {"instruction#ids", TECTUM_TYPE_I32, 1, {tokens}, ids, (size_t)tokens * sizeof(int)}};
    tectum_submit(t, v, 2, captured_ns, &number, &err);
    return number;
}

/* One observation is alone in the ring, which continues by itself until its action leaves. */
TEST(a_ring_gives_the_action_of_what_it_saw)
{
    struct tectum *t = open_ring("resources.ring.on_change=keep");
    struct tectum_chunk chunk;
    static double alone[4][64], actions[64];
    int64_t numbers[4];
    CHECK_INT(tectum_rows(t), ==, 1);
    REQUIRE(tectum_columns(t) <= 64);
    for (int i = 0; i < 4; i++) {
        int64_t captured = tectum_now() - 1000;
        int64_t number = submit_ring(t, i, EDGE, 4, captured);
        REQUIRE(number == i);
        REQUIRE(tectum_wait(t, number, patience, alone[i], 64, &chunk, &err) == TECTUM_OK);
        CHECK_INT(chunk.observation, ==, number);
        CHECK_INT(chunk.captured_ns, ==, captured);
    }
    CHECK(memcmp(alone[0], alone[1], sizeof alone[0]) != 0);
    for (int i = 0; i < 4; i++) { /* several in flight */
        int64_t until = tectum_now() + 10000000;
        numbers[i] = submit_ring(t, i, EDGE, 4, 0);
        while (tectum_now() < until)
            ;
    }
    int64_t from = numbers[0];
    for (int left = 0; left < 4 && from <= numbers[3]; left++) {
        REQUIRE(tectum_wait(t, from, patience, actions, 64, &chunk, &err) == TECTUM_OK);
        CHECK(chunk.observation >= from && chunk.observation <= numbers[3]);
        CHECK(memcmp(actions, alone[chunk.observation - numbers[0]], STAGES * sizeof(double)) == 0);
        from = chunk.observation + 1;
    }
    CHECK_INT(chunk.observation, ==, numbers[3]);
    tectum_close(&t);
}

/* Ticks until four had a fresh action, or 60 of them; the 13th submits nothing. */
static void tick(struct tectum *t, int period_ms, int *fresh, int *aged)
{
    struct tectum_handed handed;
    static double actions[64];
    int64_t newest = -1;
    int ticks = 0;
    *fresh = *aged = 0;
    for (; ticks < 60 && (*fresh < 4 || ticks <= 12); ticks++) {
        bool blind = ticks == 12;
        int64_t number = blind ? -1 : submit_ring(t, 1, EDGE, 4, 0);
        REQUIRE(tectum_handout(t, number, tectum_now() + 2000000 * (int64_t)period_ms, actions, 64,
                               &handed, &err) == TECTUM_OK);
        newest = blind ? newest : number;
        if (handed.source != TECTUM_SOURCE_FRESH)
            continue;
        ++*fresh;
        *aged += handed.observation < newest + blind && handed.age_ns > 0;
    }
    printf("# %d of %d ticks of %d ms had a fresh action\n", *fresh, ticks, period_ms);
}

/* A busy machine is given a longer period, not asked for fewer fresh actions. */
TEST(ticks_of_a_ring_are_given_what_leaves_in_them)
{
    int fresh = 0, aged = 0;
    for (int period_ms = 20; period_ms <= 1280 && fresh < 4; period_ms *= 4) {
        struct tectum *t = open_ring_every(period_ms, NULL);
        tick(t, period_ms, &fresh, &aged);
        tectum_close(&t);
    }
    CHECK(fresh >= 4);
    CHECK_INT(aged, ==, fresh);
}

TEST(a_refused_observation_leaves_a_ring_usable)
{
    struct tectum *t = open_ring(NULL);
    struct tectum_chunk chunk;
    static double actions[64];
    int64_t first = submit_ring(t, 0, EDGE, 4, 0);
    CHECK_INT(first, ==, 0);
    CHECK_INT(submit_ring(t, 0, EDGE, 21, 0), ==, -1);
    CHECK(strstr(err.message, "instruction") && strstr(err.message, "21") &&
          strstr(err.message, "20"));
    CHECK_INT(submit_ring(t, 0, 0, 4, 0), ==, -1);
    CHECK(strstr(err.message, "cam") != NULL);
    REQUIRE(tectum_wait(t, first, patience, actions, 64, &chunk, &err) == TECTUM_OK);
    CHECK_INT(chunk.observation, ==, first);
    tectum_close(&t);
}

/* --- several robots ----------------------------------------------------------------------------
 */

enum { ROBOTS = 2 };

/* The action of an observation that is alone in a ring. */
static void lone(struct tectum *t, int kind, double *actions)
{
    struct tectum_chunk chunk;
    int64_t number = submit_ring(t, kind, EDGE, 4, 0);
    REQUIRE(tectum_wait(t, number, patience, actions, 64, &chunk, &err) == TECTUM_OK);
    CHECK_INT(chunk.observation, ==, number);
}

/* One of them sees something in every frame, the other once: its ring goes on beside that. */
TEST(robots_have_rings_of_their_own)
{
    static double alone[ROBOTS][64], actions[64];
    struct tectum *t = open_ring("resources.ring.on_change=keep"), *of[ROBOTS];
    struct tectum_chunk chunk;
    for (int r = 0; r < ROBOTS; r++)
        lone(t, 1 + r, alone[r]);
    CHECK(memcmp(alone[0], alone[1], STAGES * sizeof(double)) != 0);
    tectum_close(&t);
    t = open_ring("frame.sessions=2");
    for (int r = 0; r < ROBOTS; r++)
        of[r] = tectum_session(t, r);
    int64_t rare = submit_ring(of[1], 2, EDGE, 4, 0), often = -1;
    bool got = false;
    for (int i = 0; i < 2000 && !got; i++) {
        often = submit_ring(of[0], 1, EDGE, 4, 0);
        got = tectum_wait(of[1], rare, 2000000, actions, 64, &chunk, &err) == TECTUM_OK;
    }
    REQUIRE(got && chunk.observation == rare);
    CHECK(memcmp(actions, alone[1], STAGES * sizeof(double)) == 0);
    REQUIRE(tectum_wait(of[0], often, patience, actions, 64, &chunk, &err) == TECTUM_OK);
    CHECK(memcmp(actions, alone[0], STAGES * sizeof(double)) == 0);
    tectum_close(&t);
}

/* A reset of one drops what it saw, and its waiters are told; the other's actions come. */
TEST(a_reset_is_of_one_ring)
{
    static double alone[64], actions[64];
    struct tectum *t = open_ring(NULL), *of[ROBOTS];
    struct tectum_chunk chunk;
    lone(t, 1, alone);
    tectum_close(&t);
    t = open_ring_every(20, "frame.sessions=2");
    for (int r = 0; r < ROBOTS; r++)
        of[r] = tectum_session(t, r);
    int64_t kept = submit_ring(of[0], 1, EDGE, 4, 0), dropped = submit_ring(of[1], 2, EDGE, 4, 0);
    tectum_reset(of[1]);
    CHECK_INT(tectum_wait(of[1], dropped, patience, actions, 64, &chunk, &err), ==, TECTUM_OK);
    CHECK_STR(chunk.reason, "reset");
    REQUIRE(tectum_wait(of[0], kept, patience, actions, 64, &chunk, &err) == TECTUM_OK);
    CHECK_INT(chunk.observation, ==, kept);
    CHECK(memcmp(actions, alone, STAGES * sizeof(double)) == 0);
    lone(of[1], 1, actions);
    CHECK(memcmp(actions, alone, STAGES * sizeof(double)) == 0);
    tectum_close(&t);
}

/* --- several in one frame, early ends, resets ------------------------------------------------- */

/* Write a policy into a file, whose name ends in six X and .lua; the caller removes it. */
static void write_policy(char *path, const char *script)
{
    int file = mkstemps(path, 4);
    REQUIRE(file >= 0 && write(file, script, strlen(script)) == (ssize_t)strlen(script));
    close(file);
}

/* Frames run with observations only. */
static struct tectum *open_still(const char *policy)
{
    struct tectum *t = NULL;
    static const char *const sets[] = {"frame.period_ms=60000", "resources.ring.on_change=keep"};
    const struct tectum_options o = {.pipeline = "tests/pipelines/ring.lua",
                                     .root = ".",
                                     .threads = 1,
                                     .random_weights = 1,
                                     .size = "tiny",
                                     .seed = 6,
                                     .policy = policy,
                                     .set = sets,
                                     .n_set = 2};
    if (tectum_open(&t, &o, &err) != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(t != NULL);
    return t;
}

/* Wait until the frame that takes an observation in has ended. */
static void settle(struct tectum *t)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (atomic_load(&t->inbox.between) & TEC_TRIPLE_NEW || atomic_load(&t->emptying))
        nanosleep(&pause, NULL);
    while (atomic_load(&t->live->runtime.work.waiting) == 0)
        nanosleep(&pause, NULL);
}

TEST(of_several_in_a_frame_the_youngest_is_handed_out)
{
    char path[] = "/tmp/shallow-XXXXXX.lua";
    static const char script[] =
        "local ring\nreturn policy { name = \"shallow\", api = 1, version = 1,\n"
        "  setup = function(S, T) ring = T.ring end,\n"
        "  plan = function(S, F, D) D:depth(ring, F.index < 9 and 7 or 1) end }\n";
    write_policy(path, script);
    struct tectum *t = open_still(path);
    unlink(path);
    for (int i = 0; i < 12; i++) {
        struct tectum_handed handed;
        double actions[64];
        int64_t number = submit_ring(t, i, EDGE, 4, 0);
        int64_t until = tectum_now() + (i < STAGES - 1 ? 20000000 : patience);
        if (i < STAGES - 1)
            settle(t);
        REQUIRE(tectum_handout(t, number, until, actions, 64, &handed, &err) == TECTUM_OK);
        if (i >= STAGES - 1)
            CHECK_INT(handed.observation, ==, i < 9 ? i - (STAGES - 1) : i);
    }
    tectum_close(&t);
}

/* Observations of this kind until the first has left, or could have. */
static int64_t fill(struct tectum *t, int kind)
{
    int64_t first = -1;
    for (int i = 0; i < STAGES; i++) {
        int64_t number = submit_ring(t, kind, EDGE, 4, 0);
        first = first < 0 ? number : first;
        settle(t);
    }
    return first;
}

/* Find a token that only the second sequence makes, but not as its last: its first place. */
static int only_second(const double *a, const double *b)
{
    for (int i = 0; i < STAGES - 1; i++) {
        bool there = false;
        for (int k = 0; k < STAGES; k++)
            there = there || a[k] == b[i];
        if (!there)
            return (int)b[i];
    }
    return -1;
}

TEST(who_waits_for_an_action_that_ended_early_is_told)
{
    struct tectum *t = open_still(NULL);
    struct tectum_chunk chunk;
    static double a[64], b[64], got[64];
    REQUIRE(tectum_wait(t, fill(t, 0), patience, a, 64, &chunk, &err) == TECTUM_OK);
    tectum_reset(t);
    settle(t);
    REQUIRE(tectum_wait(t, fill(t, 1), patience, b, 64, &chunk, &err) == TECTUM_OK);
    tectum_reset(t);
    settle(t);
    int eos = only_second(a, b);
    REQUIRE(eos >= 0);
    t->engine->model->text.eos = eos;
    int64_t good = submit_ring(t, 0, EDGE, 4, 0);
    settle(t);
    int64_t first = fill(t, 1) - 1; /* seven that end early: the good one has left */
    CHECK_INT(first, ==, good);
    REQUIRE(tectum_wait(t, good, patience, got, 64, &chunk, &err) == TECTUM_OK);
    CHECK_INT(chunk.observation, ==, good);
    CHECK_STR(chunk.reason, "");
    CHECK(chunk.rows == 1 && memcmp(got, a, STAGES * sizeof(double)) == 0);
    REQUIRE(tectum_wait(t, good + 1, patience, got, 64, &chunk, &err) == TECTUM_OK);
    CHECK(chunk.observation > good && chunk.observation <= good + STAGES);
    CHECK_INT(chunk.rows, ==, 0);
    CHECK_STR(chunk.reason, "eos");
    CHECK(chunk.captured_ns > 0 && chunk.released_ns >= chunk.captured_ns);
    tectum_close(&t);
}

/* While an older sequence is in flight, its consumer waits for its actions. */
TEST(an_early_end_does_not_hide_an_older_action)
{
    struct tectum *t = open_still(NULL);
    struct tectum_chunk chunk;
    static double a[64], b[64], got[64];
    REQUIRE(tectum_wait(t, fill(t, 0), patience, a, 64, &chunk, &err) == TECTUM_OK);
    tectum_reset(t);
    REQUIRE(tectum_wait(t, fill(t, 1), patience, b, 64, &chunk, &err) == TECTUM_OK);
    tectum_reset(t);
    settle(t);
    int ends = 0;
    t->engine->model->text.eos = only_second(a, b);
    while (b[ends] != (double)t->engine->model->text.eos)
        ends++;
    int64_t good = submit_ring(t, 0, EDGE, 4, 0);
    settle(t);
    for (int i = 0; i < STAGES - 2; i++) {
        submit_ring(t, i ? 0 : 1, EDGE, 4, 0);
        settle(t);
    }
    CHECK(ends < STAGES - 2); /* the second has ended, the first has not */
    CHECK_INT(tectum_wait(t, good, 20000000, got, 64, &chunk, &err), ==, TECTUM_TIME);
    CHECK_INT(tectum_wait(t, good + 1, 20000000, got, 64, &chunk, &err), ==, TECTUM_TIME);
    submit_ring(t, 0, EDGE, 4, 0);
    REQUIRE(tectum_wait(t, good, patience, got, 64, &chunk, &err) == TECTUM_OK);
    CHECK(chunk.rows == 1 && chunk.observation == good);
    REQUIRE(tectum_wait(t, good + 1, patience, got, 64, &chunk, &err) == TECTUM_OK);
    CHECK(chunk.rows == 0 && chunk.observation == good + 1);
    CHECK_STR(chunk.reason, "eos");
    tectum_close(&t);
}

TEST(a_reset_empties_a_ring)
{
    struct tectum *t = open_still(NULL);
    struct tectum_chunk chunk;
    struct tectum_handed handed;
    static double actions[64];
    tectum_reset(t); /* nothing is there to drop */
    for (int i = 0; i < 3; i++) {
        submit_ring(t, i, EDGE, 4, 0);
        settle(t);
    }
    CHECK_INT(tectum_wait(t, 0, 20000000, actions, 64, &chunk, &err), ==, TECTUM_TIME);
    tectum_reset(t);
    REQUIRE(tectum_wait(t, 0, patience, actions, 64, &chunk, &err) == TECTUM_OK);
    CHECK(chunk.rows == 0 && chunk.observation == 2);
    CHECK_STR(chunk.reason, "reset");
    CHECK_INT(tectum_wait(t, 3, 20000000, actions, 64, &chunk, &err), ==, TECTUM_TIME);
    int64_t first = fill(t, 3);
    CHECK_INT(first, ==, 3);
    REQUIRE(tectum_wait(t, 0, patience, actions, 64, &chunk, &err) == TECTUM_OK);
    CHECK(chunk.rows == 1 && chunk.observation == 3);
    submit_ring(t, 4, EDGE, 4, 0);
    settle(t);
    tectum_reset(t); /* what left is not given any more, either */
    CHECK(tectum_poll(t, 3, actions, 64, &chunk, &err) == TECTUM_TIME || chunk.rows == 0);
    REQUIRE(tectum_handout(t, first + STAGES, tectum_now() + 1000, actions, 64, &handed, &err) ==
            TECTUM_OK);
    CHECK(handed.source != TECTUM_SOURCE_FRESH);
    tectum_reset(NULL);
    tectum_close(&t);
}

/* Requests are counted on through a reset; the next text is of the observation that came behind
 * it. */
TEST(a_reset_begins_other_texts)
{
    struct tectum *t = NULL;
    struct tectum_piece piece;
    char path[] = "/tmp/talks-XXXXXX.lua";
    static const char script[] = /* a slow machine has no slack: it talks all the same */
        "local ring\nreturn policy { name = \"talks\", api = 1, version = 1,\n"
        "  needs = { \"depth\", \"decode.k\" }, setup = function(S, T) ring = T.ring end,\n"
        "  plan = function(S, F, D) D:depth(ring, 7)\n"
        "    for i = 1, F.nreq do D:decode(i, 4) end end }\n";
    write_policy(path, script);
    const struct tectum_options o = {.pipeline = "tests/pipelines/ring_says.lua",
                                     .root = ".",
                                     .threads = 1,
                                     .random_weights = 1,
                                     .size = "tiny",
                                     .seed = 6,
                                     .policy = path};
    if (tectum_open(&t, &o, &err) != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    unlink(path);
    REQUIRE(t != NULL);
    for (int round = 0; round < 8; round++) {
        int tokens = 0;
        int64_t number = submit_ring(t, round, EDGE, 4, 0);
        REQUIRE(number == round);
        do {
            REQUIRE(tectum_read(t, patience, &piece, &err) == TECTUM_OK);
            CHECK_INT(piece.request, ==, round);
            CHECK_INT(piece.observation, ==, number);
            tokens += !piece.reason[0];
        } while (!piece.reason[0]);
        CHECK(tokens > 0);
        tectum_reset(t);
    }
    tectum_close(&t);
}

TAP_MAIN
