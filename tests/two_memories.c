/* two_memories.c - two memories in one prompt, of one session and of several: what one of them has
 * computed is read by its worker before the other computes in the same place of the plan, so that
 * the keys kept are its own. One memory that two nodes load from, and a draft behind one. */
#include "graph/run/engine/engine.h"
#include "graph/run/recall/memory_own.h"
#include "tests/box.h"
#include "tests/loop_frame.h"
#include "tests/store_inside.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20, LOOKS = 2000 };

static struct tec_heap heap;
static struct tec_error err;

static struct tec_value text_value(const char *name, const char *text)
{
    return (struct tec_value){
        .name = name, .kind = TEC_VALUE_TEXT, .data = text, .bytes = strlen(text)};
}

/* New facts of somebody for both memories of a session, and a goal: the input of its next frame. */
static void tell(struct tec_engine *engine, int session, int whose, int round,
                 struct tec_frame_input *input)
{
    char facts[100], episodes[100];
    static int32_t goal[4] = {3, 4, 5, 6};
    snprintf(facts, sizeof facts, "{\"put\": {\"cup\": \"the cup of %d is at %d\\n\"}}", whose,
             round);
    snprintf(episodes, sizeof episodes, "{\"put\": {\"box\": \"day %d of %d was long\\n\"}}", round,
             whose);
    const struct tec_value given[] = {text_value("memory", facts),
                                      text_value("episodes", episodes),
                                      {"goal#ids", TEC_VALUE_I32, 1, {4}, goal, sizeof goal},
                                      text_value("goal", "cup")};
    enum tec_status status =
        tec_session_observe(engine->sessions[session], given, 4, NULL, round, 0, input, NULL, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
}

static void run_frame(struct tec_engine *engine, int session, const struct tec_frame_input *input)
{
    struct tec_tick tick = tec_loop_tick(engine->loop, 0, 1);
    tick.session = session;
    CHECK(!tec_loop_run(engine->loop, input, &tick)->failed);
}

static void observe(struct tec_engine *engine, int session, int round)
{
    struct tec_frame_input input;
    tell(engine, session, session, round, &input);
    run_frame(engine, session, &input);
}

static struct tec_memory *memory_of(const struct tec_engine *engine, int m, int session)
{
    return tec_memory_of(engine->memories[m], session);
}

/* What is kept of the only segment is what computing it gives. */
static bool kept_right(const struct tec_engine *engine, struct tec_memory *m)
{
    enum { MOST = 64 };
    struct tec_store_segment_view view;
    struct tec_kv *kv = NULL;
    int ids[MOST];
    size_t n = 0, piece;
    bool right = true;
    if (!tec_store_view(m->store, 0, &view) ||
        tec_memory_encode(m, view.text, view.text_bytes, ids, MOST, &n, NULL) != TEC_OK ||
        tec_store_pin(m->store, 0, &kv, NULL) != TEC_OK)
        return false;
    const struct tec_remember_text text = {ids, (int)n};
    right = tec_remember_run(engine->plan, &text, 1, &err) == TEC_OK;
    piece = n * m->row;
    unsigned char *k = tec_heap_get(&heap, 2 * piece), *stored = tec_heap_get(&heap, 4 * piece);
    for (int l = 0; right && l < m->layers; l++) {
        tec_remember_read(engine->plan, 0, (int)n, l, k, k + piece);
        right = tec_store_kv_piece_bytes(kv) <= 4 * piece &&
                tec_store_read(m->store, kv, (uint32_t)l, stored, NULL) == TEC_OK &&
                memcmp(stored, k, 2 * piece) == 0;
    }
    tec_heap_put(&heap, k);
    tec_heap_put(&heap, stored);
    tec_store_drop(m->store, kv);
    return right;
}

/* Frames without an observation until all segments are kept; how often both had left a job. */
static int settle(struct tec_engine *engine)
{
    const struct timespec rest = {0, 2000000};
    int both = 0;
    for (int i = 0; i < LOOKS; i++) {
        uint32_t segment, missing = 0;
        (void)loop_frame(engine->loop, NULL, 0, 0);
        int done = 0;
        for (int m = 0; m < engine->n_memories; m++) {
            const struct tec_remember_job *job = &engine->memories[m]->shared->job;
            done += !job->k && atomic_load(&job->state) == TEC_JOB_DONE; /* it has no copies */
            for (int s = 0; s < engine->n_sessions; s++)
                missing += tec_store_missing(memory_of(engine, m, s)->store, &segment, 1);
        }
        both += done > 1;
        if (missing == 0)
            return both;
        nanosleep(&rest, NULL);
    }
    CHECK(false); /* segments are kept */
    return both;
}

static struct tec_engine *opened_with(const char *path, const char *sessions,
                                      const struct tec_cost_table *costs,
                                      struct tec_pipeline **pipeline)
{
    struct tec_engine *engine;
    struct tec_diagnostics d;
    const char *set[] = {"resources.mem.store=unused", sessions};
    const struct tec_load_options load = {
        .path = path, .root = TECTUM_SOURCE "/pipelines", .set = set, .n_set = 2};
    tec_diagnostics_init(&d, &heap);
    REQUIRE(tec_pipeline_load(pipeline, &load, &heap, &d, &err) == TEC_OK);
    tec_diagnostics_finish(&d);
    const struct tec_engine_options options = {
        .pipeline = *pipeline,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 3,
        .size = "tiny",
        .saturated = true,
        .forgets = true,
        .costs = costs,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()}};
    enum tec_status status = tec_engine_open(&engine, &options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    return engine;
}

static struct tec_engine *opened_of(const char *path, const char *sessions,
                                    struct tec_pipeline **pipeline)
{
    return opened_with(path, sessions, NULL, pipeline);
}

static struct tec_engine *opened(const char *sessions, struct tec_pipeline **pipeline)
{
    struct tec_engine *engine =
        opened_of(TECTUM_SOURCE "/pipelines/graphs/g11_two_memories.lua", sessions, pipeline);
    REQUIRE(engine->n_memories == 2);
    return engine;
}

static void check_jobs(const char *sessions)
{
    struct tec_pipeline *pipeline;
    struct tec_engine *engine = opened(sessions, &pipeline);
    int both = 0;
    for (int s = 0; s < engine->n_sessions; s++) { /* tiers are of all sessions, in equal parts */
        const struct tec_memory *m = memory_of(engine, 0, s);
        CHECK_INT(m->store->options.ram_bytes, ==, m->resource->tiers.host / engine->n_sessions);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int s = 0; s < engine->n_sessions; s++)
            observe(engine, s, round);
        both += settle(engine);
        for (int m = 0; m < 2; m++)
            for (int s = 0; s < engine->n_sessions; s++)
                CHECK(kept_right(engine, memory_of(engine, m, s)));
    }
    for (int m = 0; m < 2; m++)
        for (int s = 0; s < engine->n_sessions; s++)
            CHECK(tec_memory_counts(memory_of(engine, m, s)).remembered_tokens > 0);
    CHECK_INT(both, ==, 0);
    tec_engine_close(engine);
    tec_pipeline_free(pipeline);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_job_waits_until_the_one_before_has_been_read)
{
    check_jobs("frame.sessions=1");
}

TEST(so_do_those_of_several_sessions)
{
    check_jobs("frame.sessions=3");
}

/* The prompt of the frame that brings a fact is the same however quick the worker is. */
TEST(what_another_session_has_is_taken_over_behind_the_frame)
{
    const struct timespec turns = {0, 50000000}; /* of the worker, some fifty */
    struct tec_pipeline *pipeline;
    struct tec_engine *engine = opened("frame.sessions=2", &pipeline);
    struct tec_frame_input input;
    uint32_t segment;
    observe(engine, 0, 0);
    (void)settle(engine);
    tell(engine, 1, 0, 0, &input);
    nanosleep(&turns, NULL);
    for (int m = 0; m < 2; m++)
        CHECK_INT(tec_store_missing(memory_of(engine, m, 1)->store, &segment, 1), ==, 1);
    run_frame(engine, 1, &input);
    (void)settle(engine);
    for (int m = 0; m < 2; m++) {
        CHECK(tec_memory_counts(memory_of(engine, m, 1)).shared == 1);
        CHECK(kept_right(engine, memory_of(engine, m, 1)));
    }
    tec_engine_close(engine);
    tec_pipeline_free(pipeline);
    CHECK_INT(heap.live, ==, 0);
}

/* --- one memory, two nodes ------------------------------------------------------------------- */

/* What an arm and its planner see, with a new fact. */
static void tell_arm(struct tec_engine *engine, int session, int round,
                     struct tec_frame_input *input)
{
    static uint8_t picture[56 * 56 * 3];
    static float state[8];
    static int32_t words[4] = {3, 4, 5, 6};
    char past[100];
    snprintf(past, sizeof past, "{\"put\": {\"cup\": \"the cup of %d is at %d\"}}", session, round);
    const struct tec_value given[] = {
        text_value("past", past),
        {"front", TEC_VALUE_U8, 3, {56, 56, 3}, picture, sizeof picture},
        {"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
        {"prompt#ids", TEC_VALUE_I32, 1, {4}, words, sizeof words},
        text_value("prompt", "cup"),
        {"goal#ids", TEC_VALUE_I32, 1, {4}, words, sizeof words},
        text_value("goal", "cup")};
    int n = tec_pipeline_find_node(engine->options.pipeline, "think") < 0 ? 5 : 7;
    enum tec_status status = tec_session_observe(engine->sessions[session], given, (size_t)n, NULL,
                                                 round, 0, input, NULL, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
}

/* Every text is made in its frame. */
static enum tec_status at_once(void *self, const struct tec_frame_view *view,
                               struct tec_decision *decision, struct tec_error *error)
{
    (void)self, (void)view, (void)error;
    for (int i = 0; i < decision->n_rows; i++)
        decision->rows[i].k = 4;
    for (int i = 0; i < TEC_MAX_NODES; i++)
        decision->nodes[i].slices = 1000;
    return TEC_OK;
}

/* Prompts wait for the planner's prefill, in rooms that go from session to session. */
TEST(two_nodes_that_load_from_one_memory_are_told_the_same)
{
    enum { SESSIONS = 3 };
    const struct timespec rest = {0, 1000000};
    struct tec_pipeline *pipeline;
    struct tec_engine *engine =
        opened_of(TECTUM_SOURCE "/tests/pipelines/two_load.lua", "frame.sessions=3", &pipeline);
    struct tec_frame_input input;
    REQUIRE(engine->n_memories == 2);
    CHECK_STR(tec_memory_name(engine->memories[0]), "mem");
    CHECK_STR(tec_memory_name(engine->memories[1]), "mem.recall2");
    tec_loop_set_planner(engine->loop, &(struct tec_planner){"at_once", NULL, .plan = at_once});
    for (int round = 0; round < 4; round++)
        for (int s = 0; s < SESSIONS; s++) {
            tell_arm(engine, s, round, &input);
            run_frame(engine, s, &input);
            (void)settle(engine);
            for (int i = 0; i < LOOKS && tec_loop_requests(engine->loop); i++) {
                run_frame(engine, s, NULL);
                nanosleep(&rest, NULL); /* slices come when their keys have */
            }
            CHECK_INT(tec_loop_requests(engine->loop), ==, 0);
        }
    for (int s = 0; s < SESSIONS; s++) {
        struct tec_store_segment_view a, b;
        CHECK(tec_store_view(memory_of(engine, 0, s)->store, 0, &a));
        CHECK(tec_store_view(memory_of(engine, 1, s)->store, 0, &b));
        CHECK(a.text_bytes == b.text_bytes && memcmp(a.text, b.text, a.text_bytes) == 0);
    }
    tec_engine_close(engine);
    tec_pipeline_free(pipeline);
    CHECK_INT(heap.live, ==, 0);
}

TEST(each_of_them_has_the_costs_of_its_own_launches)
{
    struct tec_cost_row rows[] = {{"keep", 8, 1, 8e6, 8e6, 8e6, 8e6, 8e6, 0, 0},
                                  {"keep.recall2", 8, 1, 16e6, 16e6, 16e6, 16e6, 16e6, 0, 0}};
    const struct tec_cost_table costs = {.n_rows = 2, .rows = rows};
    struct tec_pipeline *pipeline;
    struct tec_engine *engine = opened_with(TECTUM_SOURCE "/tests/pipelines/two_load.lua",
                                            "frame.sessions=1", &costs, &pipeline);
    REQUIRE(engine->n_memories == 2);
    CHECK_INT(engine->memories[0]->shared->token_ns, ==, 1000000000);
    CHECK_INT(engine->memories[1]->shared->token_ns, ==, 2000000000);
    tec_engine_close(engine);
    tec_pipeline_free(pipeline);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_draft_has_the_prompt_that_it_proposes_to_with_its_segments)
{
    struct tec_pipeline *pipeline;
    struct tec_engine *engine = opened_of(TECTUM_SOURCE "/tests/pipelines/draft_remembers.lua",
                                          "frame.sessions=1", &pipeline);
    struct tec_frame_input input;
    for (int round = 0; round < 3; round++) {
        tell_arm(engine, 0, round, &input);
        const struct tec_chain_input *its = &input.chains[0], *draft = &input.chains[1];
        CHECK(its->memory && its->memory->n_segments > 0 && !draft->memory);
        CHECK_INT(its->prefix.n_text, >, 4);
        CHECK_INT(draft->prefix.n_text, ==, its->prefix.n_text);
        CHECK(memcmp(draft->prefix.ids, its->prefix.ids,
                     (size_t)its->prefix.n_text * sizeof *its->prefix.ids) == 0);
        CHECK_INT(draft->prefix.n_pictures, ==, its->prefix.n_pictures);
        run_frame(engine, 0, &input);
    }
    tec_engine_close(engine);
    tec_pipeline_free(pipeline);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
