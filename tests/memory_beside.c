/* memory_beside.c - a memory in prompts that requests wait for, beside hard nodes: however the
 * recall is cut into frames, given up, or begun again because what was kept is gone, the answers
 * are those of prompts computed whole, and the actions are those without it. */
#include "graph/run/engine/engine.h"
#include "graph/run/recall/memory_own.h"
#include "tests/box.h"
#include "tests/loop_frame.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#define PIPELINE TECTUM_SOURCE "/tests/pipelines/graphs/memory_beside.lua"
#define FULL "nodes.recall.select=full"
#define REUSE "nodes.recall.select=reuse"
#define RECOMPUTE "nodes.recall.recompute.floor=1"
#define NO_RAM "resources.mem.tiers.host=1"

enum { SIDE = 56, CHUNK = 6 * 32, FRAMES = 6, MOST = 6 };

static struct tec_heap heap;
static struct tec_error err;

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    int slices, node; /* of a frame; of the prefill */
    float chunks[64][CHUNK];
    int n_chunks;
    int count[FRAMES], tokens[FRAMES][MOST]; /* answers, by the frame of their observation */
};

static enum tec_status plan(void *self, const struct tec_frame_view *view, struct tec_decision *d,
                            struct tec_error *error)
{
    const struct open *o = self;
    (void)view, (void)error;
    for (int i = 0; i < d->n_rows; i++)
        d->rows[i].k = 3;
    d->nodes[o->node].slices = o->slices;
    return TEC_OK;
}

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    struct open *o = user;
    (void)action, (void)record;
    REQUIRE(o->n_chunks < 64);
    memcpy(o->chunks[o->n_chunks++], chunk, sizeof o->chunks[0]);
}

static void open_engine(struct open *o, const char *file, const char *more, const char *most)
{
    char store[500];
    struct tec_diagnostics d;
    snprintf(store, sizeof store, "resources.mem.store=%s", file ? file : "unused");
    const char *set[] = {store, more, most};
    const struct tec_load_options load = {
        .path = PIPELINE, .root = TECTUM_SOURCE "/pipelines", .set = set, .n_set = most ? 3 : 2};
    memset(o, 0, sizeof *o);
    tec_diagnostics_init(&d, &heap);
    enum tec_status status = tec_pipeline_load(&o->pipeline, &load, &heap, &d, &err);
    tec_diagnostics_finish(&d);
    const struct tec_engine_options options = {
        .pipeline = o->pipeline,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 3,
        .size = "tiny",
        .saturated = true,
        .forgets = !file,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()},
        .released = released,
        .user = o};
    if (status == TEC_OK)
        status = tec_engine_open(&o->engine, &options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK && o->engine->n_memories == 1);
    for (int i = 0; i < o->engine->topology.n_nodes; i++)
        if (o->engine->topology.nodes[i].slices)
            o->node = i;
    o->slices = 1;
    const struct tec_planner planner = {.name = "pace", .self = o, .plan = plan};
    tec_loop_set_planner(o->engine->loop, &planner);
}

static void close_engine(struct open *o)
{
    for (int i = 0; i < o->engine->n_chains; i++)
        CHECK_INT(o->engine->chains[i].plan->prefixes.in_use, ==, 0);
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
}

static void listen(struct open *o)
{
    for (int i = 0; i < tec_loop_utterances(o->engine->loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(o->engine->loop, i);
        if (u->id < 0 || u->frame >= FRAMES)
            continue;
        o->count[u->frame] = u->count;
        memcpy(o->tokens[u->frame], u->tokens, (size_t)u->count * sizeof(int));
    }
}

static void observe(struct open *o, int frame, struct tec_frame_input *input)
{
    static uint8_t cam[SIDE * SIDE * 3];
    static float state[8];
    static int32_t prompt[5] = {3, 4, 5, 6, 7}, question[6];
    static const char facts[] = "{\"put\": {\"cup\": \"the cup is here\\n\", \"fork\": \"a fork "
                                "lies there\\n\", \"sink\": \"the sink is full\\n\"}}";
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        cam[i] = (uint8_t)(i * 7 + frame * 31);
    for (int i = 0; i < 6; i++)
        question[i] = 20 + (i * 3 + frame) % 40;
    const struct tec_value given[] = {
        {"cam", TEC_VALUE_U8, 3, {SIDE, SIDE, 3}, cam, sizeof cam},
        {"side", TEC_VALUE_U8, 3, {SIDE, SIDE, 3}, cam, sizeof cam},
        {"state", TEC_VALUE_F32, 1, {8}, state, sizeof state},
        {"prompt#ids", TEC_VALUE_I32, 1, {5}, prompt, sizeof prompt},
        {"question#ids", TEC_VALUE_I32, 1, {6}, question, sizeof question},
        {.name = "question", .kind = TEC_VALUE_TEXT, .data = "cup", .bytes = 3},
        {.name = "past", .kind = TEC_VALUE_TEXT, .data = facts, .bytes = sizeof facts - 1}};
    enum tec_status status =
        tec_session_observe(o->engine->session, given, 7, NULL, frame, 0, input, NULL, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
}

/* Frames without an observation until nobody speaks. */
static void drain(struct open *o)
{
    const struct timespec rest = {0, 200000};
    struct tec_loop *loop = o->engine->loop;
    for (int i = 0; i < 20000 && (i == 0 || tec_loop_live(loop) > 0); i++) {
        CHECK(!loop_frame(loop, NULL, 0, 0)->failed);
        listen(o);
        if (i > 100) /* it waits for a file */
            nanosleep(&rest, NULL);
    }
    CHECK_INT(tec_loop_live(loop), ==, 0);
}

/* The frame of an observation, which every second one asks about. */
static void step(struct open *o, int frame)
{
    struct tec_frame_input input;
    observe(o, frame, &input);
    struct tec_tick tick = tec_loop_tick(o->engine->loop, 0, 0);
    tick.frame = frame;
    tick.spawn = frame % 2 == 0;
    CHECK(!tec_loop_run(o->engine->loop, &input, &tick)->failed);
    listen(o);
}

static void run(struct open *o, int from, int to)
{
    for (int f = from; f < to; f++) {
        step(o, f);
        drain(o);
        tec_memory_chain_settle(o->engine->chains[1].memory);
    }
}

static void compare(const struct open *is, const struct open *want)
{
    for (int f = 0; f < FRAMES; f += 2) { /* every(2) */
        CHECK_INT(want->count[f], >, 0);
        CHECK_INT(is->count[f], ==, want->count[f]);
        CHECK(memcmp(is->tokens[f], want->tokens[f], sizeof want->tokens[f]) == 0);
    }
    CHECK_INT(is->n_chunks, ==, want->n_chunks);
    CHECK(memcmp(is->chunks, want->chunks, sizeof want->chunks) == 0);
}

/* A slice a frame, some, or all at once. */
TEST(a_recall_in_slices_is_a_prompt_computed_whole)
{
    static struct open want, is;
    open_engine(&want, NULL, FULL, NULL);
    want.slices = 1000;
    run(&want, 0, FRAMES);
    for (int slices = 1; slices <= 1000; slices *= 10) {
        open_engine(&is, NULL, RECOMPUTE, NULL);
        is.slices = slices;
        run(&is, 0, FRAMES);
        struct tec_memory_counts c = tec_memory_counts(is.engine->memories[0]);
        CHECK_INT(c.prompts, ==, FRAMES / 2);
        CHECK_INT(c.segments, ==, 3 * FRAMES / 2);
        CHECK_INT(c.missing, ==, 3);
        CHECK_INT(c.whole, ==, 0);
        compare(&is, &want);
        close_engine(&is);
    }
    close_engine(&want);
    CHECK_INT(heap.live, ==, 0);
}

static void spoil(const char *path)
{
    static const unsigned char zeros[4096];
    struct stat about;
    int file = open(path, O_WRONLY);
    REQUIRE(file >= 0 && fstat(file, &about) == 0);
    for (int64_t at = 4096; at < about.st_size; at += 4096) {
        int64_t n = about.st_size - at < 4096 ? about.st_size - at : 4096;
        REQUIRE(pwrite(file, zeros, (size_t)n, at) == n);
    }
    close(file);
}

TEST(what_is_gone_in_the_middle_of_a_prompt_begins_it_again)
{
    static struct open want, is;
    struct box box;
    char path[200];
    box_make(&box);
    snprintf(path, sizeof path, "%s/store", box.dir);
    open_engine(&want, NULL, FULL, NULL);
    run(&want, 0, FRAMES);
    open_engine(&is, path, REUSE, NO_RAM);
    run(&is, 0, 2);
    spoil(path);
    run(&is, 2, FRAMES);
    CHECK(tec_memory_counts(is.engine->memories[0]).whole >= 1);
    CHECK(memcmp(is.tokens[2], want.tokens[2], sizeof want.tokens[2]) == 0);
    close_engine(&is);
    close_engine(&want);
    box_remove(&box);
    CHECK_INT(heap.live, ==, 0);
}

/* A recall that is begun when its request ends leaves nothing behind. */
TEST(a_recall_that_nobody_waits_for_any_more_is_given_up)
{
    static struct open want, is;
    open_engine(&want, NULL, FULL, NULL);
    run(&want, 0, FRAMES);
    open_engine(&is, NULL, RECOMPUTE, NULL);
    run(&is, 0, 2);
    step(&is, 2);
    CHECK_INT(tec_loop_live(is.engine->loop), ==, 1);
    tec_loop_restart(is.engine->loop);
    CHECK(!is.engine->chains[1].memory->runs);
    is.n_chunks = 2;
    run(&is, 2, FRAMES);
    compare(&is, &want);
    close_engine(&is);
    close_engine(&want);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
