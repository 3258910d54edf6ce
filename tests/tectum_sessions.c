/* tectum_sessions.c - tectum.h with several robots of one kind: each has its own handle, and the
 * actions and texts that it has alone. */
#include "tectum.h"

#include "tests/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROBOTS = 3, ROUNDS = 4, SIDE = 64, PIXELS = SIDE * SIDE * 3, ROOM = 64, TOKENS = 12 };
static const int64_t patience = 120000000000;

/* What a robot sees and gets. */
struct robot {
    struct tectum *handle;
    int kind;       /* what its pictures are made from */
    bool remembers; /* it is told something with every observation */
    uint8_t scene[PIXELS], wrist[PIXELS];
    double actions[ROUNDS][ROOM];
    int tokens[ROUNDS][TOKENS], n_tokens[ROUNDS];
    struct tectum_error err;
    bool failed;
};
static struct robot together[ROBOTS], alone[ROBOTS];

static struct tectum *open_arms(const char *pipeline, const char *sessions,
                                struct tectum_error *err)
{
    const char *const sets[] = {sessions, "frame.gather_ms=5"};
    const struct tectum_options o = {
        .pipeline = pipeline, .root = ".", .threads = 1, .seed = 5, .set = sets, .n_set = 2};
    struct tectum *t = NULL;
    if (tectum_open(&t, &o, err) != TECTUM_OK)
        fprintf(stderr, "# %s\n", err->message);
    REQUIRE(t);
    return t;
}

static const char *const demo = "pipelines/demo_metaworld.lua";
static const char *const memories = "tests/pipelines/graphs/memory_many.lua";

static struct tectum *open_demo(const char *sessions, struct tectum_error *err)
{
    return open_arms(demo, sessions, err);
}

static enum tectum_status submit(struct robot *r, int round, int64_t *number)
{
    static const char *const prompts[] = {"press the button", "open the drawer"};
    float state[4] = {0.1F * (float)(r->kind + round), 0.6F, 0.2F, 1.0F};
    const char *prompt = prompts[(r->kind + round) % 2];
    char told[100];
    snprintf(told, sizeof told, "{\"put\": {\"fact%d\": \"the door of %d is open\"}}", round % 3,
             r->kind * (round + 2));
    for (int p = 0; p < PIXELS; p++) {
        r->scene[p] = (uint8_t)(p * (r->kind + round + 3) / 64);
        r->wrist[p] = (uint8_t)(p * (2 * r->kind + round + 7) / 16);
    }
    const struct tectum_value v[] = {
        {"observation/image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, r->scene, PIXELS},
        {"observation/wrist_image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, r->wrist, PIXELS},
        {"observation/state", TECTUM_TYPE_F32, 1, {4}, state, sizeof state},
        {"prompt", TECTUM_TYPE_TEXT, 0, {0}, prompt, strlen(prompt)},
        {"memory", TECTUM_TYPE_TEXT, 0, {0}, told, strlen(told)}};
    return tectum_submit(r->handle, v, r->remembers ? 5 : 4, 0, number, &r->err);
}

/* Read what has been said of the robot's observations; until the text of the last one has ended. */
static bool read_texts(struct robot *r)
{
    static const struct tectum_piece none;
    for (struct tectum_piece piece = none;;) {
        if (tectum_read(r->handle, patience, &piece, &r->err) != TECTUM_OK ||
            piece.observation < 0 || piece.observation >= ROUNDS)
            return false;
        int *n = &r->n_tokens[piece.observation];
        if (piece.token >= 0 && *n < TOKENS)
            r->tokens[piece.observation][(*n)++] = piece.token;
        else if (piece.token < 0 && piece.observation == ROUNDS - 1)
            return true;
    }
}

static void *live(void *user)
{
    struct robot *r = user;
    struct tectum_chunk chunk;
    for (int i = 0; i < ROUNDS && !r->failed; i++) {
        int64_t number = -1;
        if (r->remembers && r->kind == 1 && i == 2)
            tectum_reset(r->handle); /* of its own episode alone */
        r->failed = submit(r, i, &number) != TECTUM_OK || number != i ||
                    tectum_wait(r->handle, i, patience, r->actions[i], ROOM, &chunk, &r->err) !=
                        TECTUM_OK ||
                    chunk.observation != i || chunk.rows != 16;
    }
    r->failed |= !read_texts(r);
    return NULL;
}

static void live_alone(struct robot *r, int kind, bool remembers)
{
    memset(r, 0, sizeof *r);
    r->kind = kind;
    r->remembers = remembers;
    r->handle = open_arms(remembers ? memories : demo, "frame.sessions=1", &r->err);
    CHECK_INT(tectum_sessions(r->handle), ==, 1);
    live(r);
    CHECK(!r->failed);
    tectum_close(&r->handle);
}

static void check_together(bool remembers)
{
    struct tectum_error err;
    struct tectum *t = open_arms(remembers ? memories : demo, "frame.sessions=3", &err);
    pthread_t threads[ROBOTS];
    CHECK_INT(tectum_sessions(t), ==, ROBOTS);
    CHECK(tectum_session(t, 0) == t);
    for (int i = 0; i < ROBOTS; i++) {
        memset(&together[i], 0, sizeof together[i]);
        together[i].kind = i;
        together[i].remembers = remembers;
        together[i].handle = tectum_session(t, i);
        REQUIRE(together[i].handle);
        REQUIRE(pthread_create(&threads[i], NULL, live, &together[i]) == 0);
    }
    for (int i = 0; i < ROBOTS; i++)
        pthread_join(threads[i], NULL);
    tectum_close(&t);
    for (int i = 0; i < ROBOTS; i++) {
        struct robot *a = &together[i], *b = &alone[i];
        live_alone(b, i, remembers);
        CHECK(!a->failed);
        CHECK(memcmp(a->actions, b->actions, sizeof a->actions) == 0);
        for (int n = 0; n < ROUNDS; n++) { /* a slow machine may give a text up */
            int both = a->n_tokens[n] < b->n_tokens[n] ? a->n_tokens[n] : b->n_tokens[n];
            CHECK(memcmp(a->tokens[n], b->tokens[n], (size_t)both * sizeof(int)) == 0);
        }
        CHECK(i == 0 || memcmp(a->actions, together[0].actions, sizeof a->actions) != 0);
    }
}

/* And what was told to one is not in the prompts of another; nor does one's reset reach them. */
TEST(robots_with_memories_have_what_they_have_alone)
{
    check_together(true);
    struct robot *r = &together[0]; /* as before, but never told anything */
    live_alone(r, 1, false);
    CHECK(memcmp(r->actions, alone[1].actions, sizeof r->actions) != 0);
}

TEST(robots_on_threads_of_their_own_have_what_they_have_alone)
{
    check_together(false);
}

TEST(a_robot_that_is_silent_keeps_nobody_waiting)
{
    struct tectum_error err;
    struct tectum *t = open_demo("frame.sessions=2", &err);
    struct robot *r = &together[0];
    memset(r, 0, sizeof *r);
    r->handle = tectum_session(t, 1);
    live(r);
    CHECK(!r->failed);
    struct tectum_chunk chunk;
    double actions[ROOM];
    CHECK_INT(tectum_poll(t, 0, actions, ROOM, &chunk, &err), ==, TECTUM_TIME);
    struct tectum_piece piece;
    CHECK_INT(tectum_read(t, 0, &piece, &err), ==, TECTUM_TIME);
    tectum_close(&t);
}

TEST(a_robot_is_given_its_own_actions_by_its_deadline)
{
    struct tectum_error err;
    struct tectum *t = open_demo("frame.sessions=2", &err);
    for (int i = 0; i < 2; i++) {
        struct robot *r = &together[i];
        struct tectum_handed handed;
        int64_t number;
        memset(r, 0, sizeof *r);
        r->kind = i;
        r->handle = tectum_session(t, i);
        REQUIRE(submit(r, 0, &number) == TECTUM_OK);
        REQUIRE(tectum_handout(r->handle, number, tectum_now() + patience, r->actions[0], ROOM,
                               &handed, &err) == TECTUM_OK);
        CHECK_INT(handed.source, ==, TECTUM_SOURCE_FRESH);
        CHECK(memcmp(r->actions[0], alone[i].actions[0],
                     (size_t)handed.rows * 4 * sizeof(double)) == 0);
    }
    tectum_close(&t);
}

TEST(requests_of_another_robot_are_not_its_to_cancel)
{
    struct tectum_error err;
    struct tectum *t = open_demo("frame.sessions=2", &err);
    struct robot *r = &together[0];
    struct tectum_piece piece;
    struct tectum_outcome outcome;
    int64_t number, ticket;
    memset(r, 0, sizeof *r);
    r->handle = t;
    REQUIRE(submit(r, 0, &number) == TECTUM_OK);
    REQUIRE(tectum_read(t, patience, &piece, &err) == TECTUM_OK);
    REQUIRE(tectum_cancel(tectum_session(t, 1), piece.request, &ticket, &err) == TECTUM_OK);
    REQUIRE(tectum_asked(tectum_session(t, 1), ticket, patience, &outcome, &err) == TECTUM_OK);
    CHECK_INT(outcome.refused, ==, 1);
    CHECK_STR(outcome.reason, "not alive");
    while (piece.token >= 0)
        REQUIRE(tectum_read(t, patience, &piece, &err) == TECTUM_OK);
    CHECK(strcmp(piece.reason, "cancelled") != 0);
    tectum_close(&t);
}

TEST(a_reset_ends_the_prefix_of_its_own_robot)
{
    struct tectum_error err;
    const char *const sets[] = {"frame.sessions=2", "nodes.see.spawn=every(30)"};
    const struct tectum_options o = {.pipeline = "pipelines/demo_metaworld.lua",
                                     .root = ".",
                                     .threads = 1,
                                     .set = sets,
                                     .n_set = 2};
    struct tectum *t = NULL;
    struct tectum_chunk chunk;
    REQUIRE(tectum_open(&t, &o, &err) == TECTUM_OK);
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 2; i++) {
            struct robot *r = &together[i];
            int64_t number = -1;
            if (round == 0)
                *r = (struct robot){.handle = tectum_session(t, i), .kind = i};
            if (round == 2 && i == 1)
                tectum_reset(r->handle);
            REQUIRE(submit(r, round, &number) == TECTUM_OK);
            REQUIRE(tectum_wait(r->handle, number, patience, r->actions[round], ROOM, &chunk,
                                &r->err) == TECTUM_OK);
            CHECK_INT(chunk.observation, ==, i == 1 && round >= 2 ? 2 : 0);
        }
    tectum_close(&t);
}

/* every(3) begins anew with an episode, as a server's robot's does (tests/serve_texts.py). */
TEST(texts_are_counted_from_a_reset_on)
{
    enum { SEEN = 6, RESET = 2 };
    static const bool want[SEEN] = {true, false, true, false, false, true};
    struct tectum_error err;
    const char *const sets[] = {"nodes.talk.spawn=every(3)", "nodes.talk.deadline.ms=60000"};
    const struct tectum_options o = {
        .pipeline = demo, .root = ".", .threads = 1, .set = sets, .n_set = 2};
    struct robot *r = &together[0];
    struct tectum_chunk chunk;
    struct tectum_piece piece;
    bool said[SEEN] = {false};
    *r = (struct robot){.kind = 0};
    REQUIRE(tectum_open(&r->handle, &o, &err) == TECTUM_OK);
    for (int i = 0; i < SEEN; i++) {
        int64_t number = -1;
        if (i == RESET)
            tectum_reset(r->handle);
        REQUIRE(submit(r, i, &number) == TECTUM_OK);
        REQUIRE(tectum_wait(r->handle, i, patience, r->actions[0], ROOM, &chunk, &err) ==
                TECTUM_OK);
    }
    do {
        REQUIRE(tectum_read(r->handle, patience, &piece, &err) == TECTUM_OK);
        REQUIRE(piece.observation >= 0 && piece.observation < SEEN);
        said[piece.observation] = true;
    } while (piece.observation < SEEN - 1 || piece.token >= 0);
    CHECK(memcmp(said, want, sizeof said) == 0);
    tectum_close(&r->handle);
}

TEST(handles_that_are_not_there)
{
    struct tectum_error err;
    struct tectum *t = open_demo("frame.sessions=2", &err), *second = tectum_session(t, 1);
    REQUIRE(second);
    CHECK(tectum_session(second, 1) == second && tectum_session(second, 0) == t);
    CHECK(tectum_session(t, 2) == NULL && tectum_session(t, -1) == NULL);
    CHECK(tectum_session(NULL, 0) == NULL);
    CHECK_INT(tectum_sessions(NULL), ==, 0);
    tectum_close(&second); /* the engine goes on */
    CHECK(second == NULL);
    struct robot *r = &together[0];
    memset(r, 0, sizeof *r);
    r->handle = tectum_session(t, 1);
    live(r);
    CHECK(!r->failed);
    tectum_close(&t);
}

TAP_MAIN
