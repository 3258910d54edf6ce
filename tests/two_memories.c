/* two_memories.c - two memories in one prompt: what one of them has computed is read by its worker
 * before the other computes in the same place of the plan, so that the keys kept are its own. */
#include "graph/run/engine.h"
#include "graph/run/memory_own.h"
#include "tests/box.h"
#include "tests/loop_frame.h"

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

/* New facts for both memories, and a goal. */
static void observe(struct tec_engine *engine, int round)
{
    char facts[100], episodes[100];
    struct tec_frame_input input;
    static int32_t goal[4] = {3, 4, 5, 6};
    snprintf(facts, sizeof facts, "{\"put\": {\"cup\": \"the cup is at %d\\n\"}}", round);
    snprintf(episodes, sizeof episodes, "{\"put\": {\"box\": \"day %d was long\\n\"}}", round);
    const struct tec_value given[] = {text_value("memory", facts),
                                      text_value("episodes", episodes),
                                      {"goal#ids", TEC_VALUE_I32, 1, {4}, goal, sizeof goal},
                                      text_value("goal", "cup")};
    enum tec_status status =
        tec_session_observe(engine->session, given, 4, NULL, round, 0, &input, NULL, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    CHECK(!loop_frame(engine->loop, &input, 0, 1)->failed);
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
            const struct tec_remember_job *job = &engine->memories[m]->job;
            done += !job->k && atomic_load(&job->state) == TEC_JOB_DONE; /* it has no copies */
            missing += tec_store_missing(engine->memories[m]->store, &segment, 1);
        }
        both += done > 1;
        if (missing == 0)
            return both;
        nanosleep(&rest, NULL);
    }
    CHECK(false); /* segments are kept */
    return both;
}

TEST(a_job_waits_until_the_one_before_has_been_read)
{
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    struct tec_diagnostics d;
    const char *set[] = {"resources.mem.store=unused"};
    const struct tec_load_options load = {.path = TECTUM_SOURCE
                                          "/pipelines/graphs/g11_two_memories.lua",
                                          .root = TECTUM_SOURCE "/pipelines",
                                          .set = set,
                                          .n_set = 1};
    tec_diagnostics_init(&d, &heap);
    REQUIRE(tec_pipeline_load(&pipeline, &load, &heap, &d, &err) == TEC_OK);
    tec_diagnostics_finish(&d);
    const struct tec_engine_options options = {
        .pipeline = pipeline,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 3,
        .size = "tiny",
        .saturated = true,
        .forgets = true,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()}};
    enum tec_status status = tec_engine_open(&engine, &options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK && engine->n_memories == 2);
    int both = 0;
    for (int round = 0; round < ROUNDS; round++) {
        observe(engine, round);
        both += settle(engine);
    }
    for (int m = 0; m < 2; m++)
        CHECK(tec_memory_counts(engine->memories[m]).remembered_tokens > 0);
    CHECK_INT(both, ==, 0);
    tec_engine_close(engine);
    tec_pipeline_free(pipeline);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
