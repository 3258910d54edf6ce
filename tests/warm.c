/* warm.c - a start does not run large launches to learn what they cost: frames are the same, costs
 * are known, memory is there. */
#include "graph/run/engine/engine.h"
#include "graph/run/loop/expected.h"
#include "graph/run/loop/state.h"
#include "tests/loop_frame.h"
#include "tests/tap.h"

#include <string.h>

#define EDGES "tests/pipelines/text_edges.lua"

enum { FRAMES = 6, CHUNK = 6 * 32 };

static struct tec_heap heap;
static struct tec_error err;

struct warmed {
    struct tec_pipeline *pipeline;
    struct tec_engine_options options;
    struct tec_engine *engine;
    float chunks[FRAMES][CHUNK];
    int n;
    char said[400];
};

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    struct warmed *w = user;
    (void)action;
    (void)record;
    if (w->n < FRAMES)
        memcpy(w->chunks[w->n++], chunk, sizeof w->chunks[0]);
}

static void hear(void *user, const char *line)
{
    struct warmed *w = user;
    snprintf(w->said, sizeof w->said, "%s", line);
}

static void begin(struct warmed *w, const char *path, double sampled_from)
{
    struct tec_diagnostics d;
    const struct tec_load_options load = {.path = path, .root = "pipelines"};
    memset(w, 0, sizeof *w);
    tec_diagnostics_init(&d, &heap);
    REQUIRE(tec_pipeline_load(&w->pipeline, &load, &heap, &d, &err) == TEC_OK);
    tec_diagnostics_finish(&d);
    w->options = (struct tec_engine_options){
        .pipeline = w->pipeline,
        .root = ".",
        .random = true,
        .seed = 3,
        .size = "tiny",
        .saturated = true,
        .device = {.kind = tap.device, .threads = 2, .tier = tec_tier_best()},
        .sampled_from = sampled_from,
        .released = released,
        .trouble = hear,
        .user = w};
}

static void open_engine(struct warmed *w)
{
    enum tec_status status = tec_engine_open(&w->engine, &w->options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
}

static void end(struct warmed *w)
{
    tec_engine_close(w->engine);
    tec_pipeline_free(w->pipeline);
    CHECK_INT(heap.live, ==, 0);
}

static void run_frames(struct warmed *w)
{
    for (int frame = 0; frame < FRAMES; frame++) {
        const int32_t goal[6] = {3, 10, 20, 30, 40, 50}, prompt[4] = {4, 5, 6, 7 + frame};
        float state[8] = {(float)frame * 0.1F};
        struct tec_frame_input input;
        char warning[200];
        const struct tec_value v[] = {{"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
                                      {"goal#ids", TEC_VALUE_I32, 1, {6}, goal, sizeof goal},
                                      {"prompt#ids", TEC_VALUE_I32, 1, {4}, prompt, sizeof prompt}};
        REQUIRE(tec_session_observe(w->engine->session, v, 2, NULL, frame, 0, &input, warning,
                                    &err) == TEC_OK);
        int64_t calls = heap.calls;
        loop_frame(w->engine->loop, &input, 0, 0);
        CHECK_INT(heap.calls, ==, calls);
    }
}

static bool sampled(const struct warmed *w)
{
    return strstr(w->said, " commands were run, in ") != NULL;
}

/* Kinds of launches whose cost is not known before the first frame. */
static int unknown(const struct warmed *w)
{
    int n = 0;
    for (int i = 0; i < w->engine->topology.n_nodes; i++) {
        const struct tec_topology *t = &w->engine->topology;
        enum tec_cost_kind kind = tec_costs_kind_of(t->nodes[i].kind);
        if (kind == TEC_COST_KINDS)
            continue;
        double us =
            tec_loop_launch_cost(w->engine->loop, &w->engine->loop->chains[t->nodes[i].model], kind,
                                 kind == TEC_COST_DECODE ? 1 : 0, 0.5);
        n += !(us > 0.0);
    }
    return n;
}

TEST(frames_are_the_same_after_a_sampled_warm_up)
{
    static struct warmed whole, part;
    begin(&whole, EDGES, 0.0);
    open_engine(&whole);
    CHECK(!sampled(&whole));
    CHECK_INT(unknown(&whole), ==, 0);
    run_frames(&whole);
    tec_engine_close(whole.engine);
    tec_pipeline_free(whole.pipeline);
    begin(&part, EDGES, 1.0);
    open_engine(&part);
    CHECK(sampled(&part) == (strcmp(tap.device, "cpu") == 0));
    CHECK_INT(unknown(&part), ==, 0);
    run_frames(&part);
    CHECK_INT(part.n, ==, FRAMES);
    CHECK(memcmp(whole.chunks, part.chunks, sizeof part.chunks) == 0);
    end(&part);
}

/* What a table says is not looked at: no command of such launches is run. */
TEST(what_a_table_knows_is_not_run)
{
    static struct warmed w;
    struct tec_cost_row rows[TEC_MAX_NODES];
    struct tec_cost_table table = {.n_rows = 0, .rows = rows};
    begin(&w, EDGES, 1.0);
    for (int i = 0; i < w.pipeline->n_nodes; i++)
        rows[table.n_rows++] = (struct tec_cost_row){.node = w.pipeline->nodes[i].name,
                                                     .n = 1,
                                                     .min = 50,
                                                     .p50 = 50,
                                                     .p99 = 60,
                                                     .p999 = 70,
                                                     .max = 80};
    w.options.costs = &table;
    open_engine(&w);
    if (strcmp(tap.device, "cpu") == 0)
        CHECK(strstr(w.said, "were not run, the costs are known"));
    CHECK_INT(unknown(&w), ==, 0);
    run_frames(&w);
    end(&w);
}

/* Partitions, rings, trees of texts, several models, drafts: every kind of launch. */
TEST(every_kind_of_pipeline_starts_so)
{
    static const char *const paths[] = {"pipelines/pi05_aloha.lua",
                                        "pipelines/openvla_ring.lua",
                                        "pipelines/qwen_skills.lua",
                                        "pipelines/planner_and_arm.lua",
                                        "pipelines/act_aloha.lua",
                                        "pipelines/openvla_oft_libero.lua",
                                        "pipelines/pi05_libero_parallel.lua",
                                        "tests/pipelines/ring.lua"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        static struct warmed w;
        begin(&w, paths[i], 1.0);
        open_engine(&w);
        CHECK(sampled(&w) == (strcmp(tap.device, "cpu") == 0));
        end(&w);
    }
}

/* The work of a frame of a small model is far from what is sampled, that of a full one beyond it.
 */
TEST(small_models_are_run_whole)
{
    static struct warmed w;
    begin(&w, "pipelines/pi05_droid.lua", 0.0);
    open_engine(&w);
    CHECK(!sampled(&w));
    end(&w);
}

TAP_MAIN
