/* tectum.c - tests of the public interface: what a robot's program does, and everything it may do
 * wrong. */
#include "tectum.h"

#include "graph/run/engine/engine.h"
#include "policies/host/policy.h"
#include "tests/loop_frame.h"
#include "tests/tap.h"

#include <pthread.h>
#include <stdlib.h>

enum { SIDE = 64, PIXELS = SIDE * SIDE * 3, ROOM = 64 * 32, OBSERVATIONS = 4 };
static const int64_t patience = 120000000000;

static uint8_t scene[OBSERVATIONS][PIXELS], wrist[OBSERVATIONS][PIXELS];
static float states[OBSERVATIONS][4];
static struct tectum_error err;
static const struct tectum_options demo = {
    .pipeline = "pipelines/demo_metaworld.lua", .root = ".", .threads = 1, .seed = 5};

/* Make the demo's observation number i. */
static void values_of(int i, struct tectum_value v[4])
{
    static const char *const prompts[] = {"press the button", "open the drawer"};
    for (int p = 0; p < PIXELS; p++) {
        scene[i][p] = (uint8_t)(p * (i + 3) / 64);
        wrist[i][p] = (uint8_t)(p * (i + 7) / 16);
    }
    for (int s = 0; s < 4; s++)
        states[i][s] = 0.1F * (float)(i + s);
    const char *prompt = prompts[i % 2];
    v[0] = (struct tectum_value){"observation/image", TECTUM_TYPE_U8, 3,
                                 {SIDE, SIDE, 3},     scene[i],       PIXELS};
    v[1] = (struct tectum_value){"observation/wrist_image", TECTUM_TYPE_U8, 3,
                                 {SIDE, SIDE, 3},           wrist[i],       PIXELS};
    v[2] = (struct tectum_value){"observation/state", TECTUM_TYPE_F32, 1, {4},
                                 states[i],           sizeof states[i]};
    v[3] = (struct tectum_value){"prompt", TECTUM_TYPE_TEXT, 0, {0}, prompt, strlen(prompt)};
}

static struct tectum *open_demo(void)
{
    struct tectum *t = NULL;
    enum tectum_status status = tectum_open(&t, &demo, &err);
    if (status != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TECTUM_OK);
    return t;
}

TEST(submit_wait_read_close)
{
    struct tectum *t = open_demo();
    struct tectum_value v[4];
    struct tectum_chunk chunk;
    static double actions[ROOM];
    static struct tectum_piece piece;
    int64_t number = -1, before = tectum_now();
    CHECK_INT(tectum_poll(t, 0, actions, ROOM, &chunk, &err), ==, TECTUM_TIME);
    CHECK_INT(tectum_read(t, 0, &piece, &err), ==, TECTUM_TIME);
    values_of(0, v);
    REQUIRE(tectum_submit(t, v, 4, before, &number, &err) == TECTUM_OK);
    CHECK_INT(number, ==, 0);
    REQUIRE(tectum_wait(t, number, patience, actions, ROOM, &chunk, &err) == TECTUM_OK);
    CHECK_INT(chunk.observation, ==, 0);
    CHECK_INT(chunk.rows, ==, tectum_rows(t));
    CHECK_INT(chunk.columns, ==, tectum_columns(t));
    CHECK_INT(chunk.captured_ns, ==, before);
    CHECK(chunk.released_ns > before && chunk.released_ns < tectum_now());
    int tokens = 0;
    do {
        REQUIRE(tectum_read(t, patience, &piece, &err) == TECTUM_OK);
        CHECK_INT(piece.request, ==, 0);
        CHECK_INT(piece.observation, ==, 0);
        CHECK_STR(piece.node, "talk");
        CHECK_INT(piece.bytes, ==, strlen(piece.text));
        tokens += piece.token >= 0;
    } while (piece.token >= 0);
    /* A machine too slow for the text's soft deadline of 2 s rightly gives it up. */
    bool shed = strcmp(piece.reason, "deadline") == 0 && tectum_now() - before > 2000000000;
    CHECK((tokens > 0 || shed) && tokens <= 12);
    CHECK(shed || strcmp(piece.reason, "eos") == 0 || strcmp(piece.reason, "length") == 0);
    CHECK_INT(tectum_poll(t, 1, actions, ROOM, &chunk, &err), ==, TECTUM_TIME);
    CHECK_INT(tectum_poll(t, 0, actions, ROOM, NULL, &err), ==, TECTUM_OK);
    tectum_close(&t);
    CHECK(t == NULL);
    tectum_close(&t); /* again */
    tectum_close(NULL);
}

static void *open_and_close(void *status)
{
    struct tectum *t = NULL;
    const struct tectum_options act = {
        .pipeline = "pipelines/checkpoints/metaworld_act", .root = ".", .threads = 2};
    *(enum tectum_status *)status = tectum_open(&t, &act, &err);
    tectum_close(&t);
    return NULL;
}

/* Kernels of convolutions take 0.65 MiB of stack, those of a tile unit 1.7. */
TEST(a_thread_with_little_stack_opens_a_pipeline)
{
    enum tectum_status status = TECTUM_INVALID;
    pthread_attr_t small;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&small) == 0);
    REQUIRE(pthread_attr_setstacksize(&small, 256 << 10) == 0);
    REQUIRE(pthread_create(&thread, &small, open_and_close, &status) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    CHECK_INT(status, ==, TECTUM_OK);
}

TEST(a_wrong_input_is_one_located_error)
{
    struct tectum *t = open_demo();
    struct tectum_value v[4], bad[4];
    static double actions[ROOM];
    values_of(1, v);
    memcpy(bad, v, sizeof v);
    bad[1].name = "observation/wrist_imag";
    CHECK(tectum_submit(t, bad, 4, 0, NULL, &err) != TECTUM_OK);
    CHECK(strstr(err.message, "observation/wrist_imag") && !strchr(err.message, '\n'));
    memcpy(bad, v, sizeof v);
    bad[2].shape[0] = 3;
    CHECK(tectum_submit(t, bad, 4, 0, NULL, &err) != TECTUM_OK);
    CHECK(strstr(err.message, "state") != NULL);
    CHECK(tectum_submit(t, v, 3, 0, NULL, &err) != TECTUM_OK);
    CHECK(strstr(err.message, "prompt") != NULL);
    memcpy(bad, v, sizeof v);
    bad[0].type = (enum tectum_type)99;
    CHECK_INT(tectum_submit(t, bad, 4, 0, NULL, &err), ==, TECTUM_INVALID);
    bad[0].type = TECTUM_TYPE_U8;
    bad[0].data = NULL;
    CHECK_INT(tectum_submit(t, bad, 4, 0, NULL, NULL), ==, TECTUM_INVALID);
    CHECK_INT(tectum_submit(NULL, v, 4, 0, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_submit(t, NULL, 4, 0, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_wait(t, 0, 0, NULL, ROOM, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_wait(t, 0, 0, actions, 1, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_read(t, 0, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_read(NULL, 0, NULL, NULL), ==, TECTUM_INVALID);
    int64_t number = -1;
    REQUIRE(tectum_submit(t, v, 4, 0, &number, &err) == TECTUM_OK);
    CHECK_INT(number, ==, 0);
    CHECK_INT(tectum_wait(t, 0, patience, actions, ROOM, NULL, &err), ==, TECTUM_OK);
    tectum_close(&t);
}

/* A checkpoint's folder in place of a pipeline: its features are the inputs. */
TEST(a_folder_that_describes_its_robot)
{
    struct tectum *t = NULL;
    struct tectum_options o = demo;
    struct tectum_chunk chunk;
    static double actions[ROOM];
    static uint8_t pixels[30 * 30 * 3];
    const float state[8] = {0.1F, -0.2F};
    const char task[] = "pick up the cup";
    o.pipeline = "tests/golden/pi/pi0_tiny_lerobot/checkpoint";
    REQUIRE(tectum_open(&t, &o, &err) == TECTUM_OK);
    const struct tectum_value values[] = {
        {"observation.images.image", TECTUM_TYPE_U8, 3, {30, 30, 3}, pixels, sizeof pixels},
        {"observation.images.image2", TECTUM_TYPE_U8, 3, {30, 30, 3}, pixels, sizeof pixels},
        {"observation.state", TECTUM_TYPE_F32, 1, {8}, state, sizeof state},
        {"task", TECTUM_TYPE_TEXT, 0, {0}, task, sizeof task - 1}};
    int64_t number;
    CHECK_INT(tectum_submit(t, values, 4, 0, &number, &err), ==, TECTUM_OK);
    CHECK_INT(tectum_wait(t, number, patience, actions, ROOM, &chunk, &err), ==, TECTUM_OK);
    CHECK(chunk.columns == 7 && chunk.rows == 10);
    tectum_close(&t);
    o.pipeline = "tests/golden/demo/episodes/checkpoint";
    CHECK_INT(tectum_open(&t, &o, &err), !=, TECTUM_OK);
    CHECK(strstr(err.message, "does not describe its robot") != NULL);
    o.pipeline = "tests/golden/groot/n15_tiny_lerobot/checkpoint";
    o.tokenizer = "tests/golden/groot/prepost/eagle_tiny";
    o.embodiment = "nothing";
    CHECK_INT(tectum_open(&t, &o, &err), !=, TECTUM_OK);
    CHECK(strstr(err.message, "nothing") != NULL);
    o.embodiment = "new_embodiment";
    CHECK_INT(tectum_open(&t, &o, &err), ==, TECTUM_OK);
    tectum_close(&t);
}

TEST(what_cannot_be_opened_says_so)
{
    static const char *const no_fallback[] = {"guard.fallback=oxigen"};
    struct tectum *t = NULL;
    struct tectum_options o = demo;
    CHECK_INT(tectum_open(NULL, &o, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_open(&t, NULL, &err), ==, TECTUM_INVALID);
    o.pipeline = "pipelines/none.lua";
    CHECK(tectum_open(&t, &o, &err) != TECTUM_OK);
    CHECK(strstr(err.message, "none.lua") != NULL);
    o = demo;
    o.policy = "oxigen";
    CHECK_INT(tectum_open(&t, &o, &err), ==, TECTUM_NOT_FOUND);
    o = demo;
    o.set = no_fallback;
    o.n_set = 1;
    CHECK_INT(tectum_open(&t, &o, &err), ==, TECTUM_NOT_FOUND);
    CHECK(strstr(err.message, "guard.fallback: no policy 'oxigen'") != NULL);
    o = demo;
    o.weights = "tests/none";
    CHECK(tectum_open(&t, &o, &err) != TECTUM_OK);
    CHECK(t == NULL);
    CHECK_STR(tectum_status_name(TECTUM_NO_MEMORY), "NO_MEMORY");
}

/* --- the same as the loop used directly ------------------------------------------------------ */

static struct tec_heap heap;

static struct tec_engine *open_direct(struct tec_pipeline **pipeline)
{
    struct tec_error mine;
    struct tec_diagnostics d;
    struct tec_engine *e = NULL;
    const struct tec_load_options load = {.path = demo.pipeline, .root = "./pipelines"};
    tec_diagnostics_init(&d, &heap);
    REQUIRE(tec_pipeline_load(pipeline, &load, &heap, &d, &mine) == TEC_OK);
    tec_diagnostics_finish(&d);
    const struct tec_engine_options o = {
        .pipeline = *pipeline,
        .root = ".",
        .seed = demo.seed,
        .device = {.kind = "cpu", .threads = 1, .spin_us = -1, .tier = tec_tier_best()}};
    REQUIRE(tec_engine_open(&e, &o, &heap, &mine) == TEC_OK);
    return e;
}

TEST(actions_equal_those_of_the_loop)
{
    static double got[ROOM], want[ROOM];
    static float chunk[ROOM];
    struct tec_pipeline *pipeline;
    struct tec_engine *e = open_direct(&pipeline);
    struct tectum *t = open_demo();
    struct tectum_chunk info;
    for (int i = 0; i < 2; i++) {
        struct tectum_value v[4];
        struct tec_value own[4];
        struct tec_frame_input input;
        struct tec_error mine;
        values_of(i, v);
        for (int j = 0; j < 4; j++) {
            own[j] = (struct tec_value){.name = v[j].name,
                                        .kind = (enum tec_value_kind)v[j].type,
                                        .rank = v[j].rank,
                                        .data = v[j].data,
                                        .bytes = v[j].bytes};
            memcpy(own[j].shape, v[j].shape, sizeof v[j].shape);
        }
        REQUIRE(tec_session_observe(e->session, own, 4, NULL, i, 0, &input, NULL, &mine) == TEC_OK);
        loop_frame(e->loop, &input, 0, 0);
        tec_launch_actions(e->plan, tec_plan_part(e->plan, TEC_PART_FRAME, 0), chunk);
        int rows = tec_session_act_on(e->session, tec_session_observation(e->session)->state_raw,
                                      chunk, want, NULL);
        REQUIRE(tectum_submit(t, v, 4, 0, NULL, &err) == TECTUM_OK);
        REQUIRE(tectum_wait(t, i, patience, got, ROOM, &info, &err) == TECTUM_OK);
        CHECK_INT(info.rows, ==, rows);
        CHECK(memcmp(got, want, (size_t)(rows * info.columns) * sizeof(double)) == 0);
    }
    tectum_close(&t);
    tec_engine_close(e);
    tec_pipeline_free(pipeline);
    CHECK_INT(heap.live, ==, 0);
}

/* The actions that both interfaces give for the demo's observation number i. */
static void give(struct tectum *t, int i, struct tectum_chunk *chunk, struct tectum_handed *handed)
{
    static double actions[ROOM];
    struct tectum_value v[4];
    int64_t number = -1;
    values_of(i, v);
    REQUIRE(tectum_submit(t, v, 4, 0, &number, &err) == TECTUM_OK);
    REQUIRE(tectum_wait(t, number, patience, actions, ROOM, chunk, &err) == TECTUM_OK);
    int64_t far = tectum_now() + patience;
    REQUIRE(tectum_handout(t, number, far, actions, ROOM, handed, &err) == TECTUM_OK);
}

/* A stop by the robot's limits holds for both interfaces to the actions, until a reset. */
TEST(actions_beyond_the_limits_stop)
{
    struct tectum_options o = demo;
    struct tectum_chunk chunk;
    struct tectum_handed handed;
    struct tectum *t = NULL;
    o.pipeline = "tests/pipelines/limited.lua";
    REQUIRE(tectum_open(&t, &o, &err) == TECTUM_OK);
    give(t, 1, &chunk, &handed);
    CHECK(chunk.rows > 0 && chunk.limited == 0 && handed.source == TECTUM_SOURCE_FRESH);
    give(t, 0, &chunk, &handed);
    CHECK(chunk.rows == 0 && chunk.limited > 0);
    CHECK_STR(chunk.reason, "limits");
    CHECK(handed.source == TECTUM_SOURCE_STOPPED && handed.rows == 0 && handed.limited > 0);
    give(t, 1, &chunk, &handed);
    CHECK(chunk.rows == 0 && chunk.limited == 0 && handed.source == TECTUM_SOURCE_STOPPED);
    CHECK_STR(chunk.reason, "stopped");
    tectum_reset(t);
    give(t, 1, &chunk, &handed);
    CHECK(chunk.rows > 0 && handed.source == TECTUM_SOURCE_FRESH && handed.rows > 0);
    tectum_close(&t);
}

/* --- several consumers ----------------------------------------------------------------------- */

struct consumer {
    struct tectum *t;
    int first, wrong, got;
};

static void *consume(void *user)
{
    struct consumer *c = user;
    static const int rounds = 6;
    double *actions = malloc(ROOM * sizeof *actions);
    struct tectum_error mine;
    struct tectum_chunk chunk;
    for (int i = 0; actions && i < rounds; i++) {
        struct tectum_value v[4];
        int64_t number = -1;
        values_of(c->first + i % 2, v);
        c->wrong += tectum_submit(c->t, v, 4, 0, &number, &mine) != TECTUM_OK;
        c->wrong += tectum_wait(c->t, number, patience, actions, ROOM, &chunk, &mine) != TECTUM_OK;
        c->wrong += chunk.observation < number || chunk.released_ns < chunk.captured_ns;
        c->got++;
    }
    free(actions);
    return NULL;
}

static void *listen(void *user)
{
    struct consumer *c = user;
    struct tectum_piece *piece = malloc(sizeof *piece);
    struct tectum_error mine;
    for (int ends = 0; piece && ends < 2;) {
        if (tectum_read(c->t, patience, piece, &mine) != TECTUM_OK) {
            c->wrong++;
            break;
        }
        c->got++;
        ends += piece->token < 0;
    }
    free(piece);
    return NULL;
}

TEST(consumers_share_an_engine)
{
    struct tectum *t = open_demo();
    struct consumer c[3] = {{.t = t, .first = 0}, {.t = t, .first = 2}, {.t = t}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, i < 2 ? consume : listen, &c[i]) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(c[i].wrong, ==, 0);
        CHECK_INT(c[i].got, >=, 3);
    }
    tectum_close(&t);
}

/* --- requests -------------------------------------------------------------------------------- */

static const char *const on_request[] = {"nodes.talk.spawn=on_request()"};

static struct tectum *open_asked(void)
{
    struct tectum *t = NULL;
    struct tectum_options o = demo;
    o.set = on_request;
    o.n_set = 1;
    o.policy = "oxygen";
    REQUIRE(tectum_open(&t, &o, &err) == TECTUM_OK);
    return t;
}

static void submit_one(struct tectum *t, int i)
{
    struct tectum_value v[4];
    static double actions[ROOM];
    int64_t number;
    values_of(i, v);
    REQUIRE(tectum_submit(t, v, 4, 0, &number, &err) == TECTUM_OK);
    REQUIRE(tectum_wait(t, number, patience, actions, ROOM, NULL, &err) == TECTUM_OK);
}

/* Count the tokens of one request's text until it ends. */
static int read_text(struct tectum *t, int64_t request, struct tectum_piece *piece)
{
    int tokens = 0;
    do {
        REQUIRE(tectum_read(t, patience, piece, &err) == TECTUM_OK);
        tokens += piece->token >= 0 && piece->request == request;
    } while (piece->token >= 0 || piece->request != request);
    return tokens;
}

TEST(asks_have_outcomes)
{
    struct tectum *t = open_asked();
    static struct tectum_piece piece;
    struct tectum_outcome out;
    int64_t ticket = -1, last = -1;
    CHECK_INT(tectum_asked(t, 0, 0, &out, &err), ==, TECTUM_NOT_FOUND);
    CHECK_INT(tectum_ask(t, "tlk", 0, 0, NULL, &err), ==, TECTUM_NOT_FOUND);
    CHECK_INT(tectum_ask(t, NULL, -1, 0, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_ask(NULL, NULL, 0, 0, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_cancel(t, -1, NULL, &err), ==, TECTUM_INVALID);
    CHECK_INT(tectum_asked(t, 0, 0, NULL, &err), ==, TECTUM_INVALID);
    REQUIRE(tectum_ask(t, "talk", 3, 1, &ticket, &err) == TECTUM_OK);
    CHECK_INT(tectum_asked(t, ticket, 1000000, &out, &err), ==, TECTUM_TIME); /* no observation */
    submit_one(t, 0);
    REQUIRE(tectum_asked(t, ticket, patience, &out, &err) == TECTUM_OK);
    CHECK(out.ticket == ticket && out.request == 0 && !out.refused && !out.reason[0]);
    CHECK_INT(read_text(t, 0, &piece), ==, 3);
    CHECK_STR(piece.reason, "length");
    for (int i = 0; i < 40; i++)
        CHECK_INT(tectum_ask(t, NULL, 0, 0, &last, &err), ==, TECTUM_OK);
    submit_one(t, 1);
    REQUIRE(tectum_asked(t, last, patience, &out, &err) == TECTUM_OK);
    CHECK(out.refused && out.request == 40);
    CHECK_STR(out.reason, "no kv slot");
    tectum_close(&t);
}

TEST(a_cancel_needs_no_observation)
{
    struct tectum *t = open_asked();
    struct tectum_outcome out;
    int64_t ticket = -1;
    REQUIRE(tectum_cancel(t, 12, &ticket, &err) == TECTUM_OK);
    REQUIRE(tectum_asked(t, ticket, patience, &out, &err) == TECTUM_OK);
    CHECK(out.refused && out.request == 12);
    CHECK_STR(out.reason, "not alive");
    for (int i = 0; i < 64; i++) /* they wait for an observation */
        CHECK_INT(tectum_ask(t, NULL, 0, 0, NULL, &err), ==, TECTUM_OK);
    CHECK_INT(tectum_ask(t, NULL, 0, 0, NULL, &err), ==, TECTUM_TIME);
    CHECK_INT(tectum_asked(t, ticket, 0, &out, &err), ==, TECTUM_NOT_FOUND); /* 64 ago */
    submit_one(t, 0);
    REQUIRE(tectum_asked(t, 64, patience, &out, &err) == TECTUM_OK);
    CHECK_INT(tectum_ask(t, NULL, 0, 0, NULL, &err), ==, TECTUM_OK);
    tectum_close(&t);
}

static void *ask_and_cancel(void *user)
{
    struct consumer *c = user;
    struct tectum_error mine;
    struct tectum_outcome out;
    for (int i = 0; i < 60; i++) {
        int64_t ticket = -1;
        bool ask = (i + c->first) % 3 == 0;
        enum tectum_status s = ask ? tectum_ask(c->t, NULL, i % 5, i % 3, &ticket, &mine)
                                   : tectum_cancel(c->t, i, &ticket, &mine);
        c->wrong += s != TECTUM_OK && s != TECTUM_TIME;
        if (s != TECTUM_OK)
            continue;
        s = tectum_asked(c->t, ticket, patience, &out, &mine);
        c->wrong += s == TECTUM_OK ? out.ticket != ticket || (!ask && out.request != i)
                                   : s != TECTUM_NOT_FOUND;
        c->got++;
    }
    c->wrong += c->got == 0;
    return NULL;
}

TEST(asks_come_from_many_threads)
{
    struct tectum *t = open_asked();
    struct consumer c[3] = {{.t = t, .first = 0}, {.t = t, .first = 1}, {.t = t, .first = 2}};
    pthread_t threads[3];
    struct tectum_value v[4];
    values_of(0, v);
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, ask_and_cancel, &c[i]) == 0);
    int ended = 0;
    while (ended < 3) {
        submit_one(t, 0);
        while (ended < 3 && pthread_tryjoin_np(threads[ended], NULL) == 0)
            ended++;
    }
    for (int i = 0; i < 3; i++)
        CHECK_INT(c[i].wrong, ==, 0);
    tectum_close(&t);
}

TAP_MAIN
