/* planner.h - what tests of a pipeline's memory through the engine share: the planner at its
 * smallest, goals and changes of texts for it, and what its memory reports. */
#ifndef TEC_TESTS_PLANNER_H
#define TEC_TESTS_PLANNER_H

#include "graph/run/engine/engine.h"
#include "graph/run/recall/memory_own.h"
#include "tests/box.h"
#include "tests/loop_frame.h"

#include <pthread.h>
#include <unistd.h>

enum { PLAN = 16, SETTINGS = 8, LINES = 8 };
/* Room for few segments, so that frames at the size of their plan do not take long. */
#define SMALL "resources.mem.tokens=512", "resources.ctx.tokens=1024", "resources.plans.tokens=1040"
#define PIPELINE TECTUM_SOURCE "/pipelines/qwen_planner.lua"
#define FULL "nodes.recall.select=full"
#define FIRST "nodes.recall.recompute.first=1"
#define DECAY "nodes.recall.recompute.decay=1"
#define NO_RAM "resources.mem.tiers.host=1"

static struct tec_error err;
static char folder[32], path[64];
static struct tec_heap heap;

/* The errors that the memory reported. */
static struct {
    pthread_mutex_t lock;
    int n;
    char lines[LINES][TEC_MEMORY_TEXT + 64];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void hear(void *user, const char *line)
{
    (void)user;
    pthread_mutex_lock(&said.lock);
    if (said.n < LINES)
        snprintf(said.lines[said.n], sizeof said.lines[0], "%s", line);
    said.n++;
    pthread_mutex_unlock(&said.lock);
}

/* How many lines there are, once there are so many, or after 10 s. */
static inline int lines(int awaited)
{
    const struct timespec rest = {0, 2000000};
    int n = 0;
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&said.lock);
        n = said.n;
        pthread_mutex_unlock(&said.lock);
        if (n >= awaited)
            break;
        nanosleep(&rest, NULL);
    }
    return n;
}

static inline void folder_make(void)
{
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
    said.n = 0;
}

static inline void folder_remove(void)
{
    unlink(path);
    CHECK_INT(rmdir(folder), ==, 0);
    CHECK_INT(heap.live, ==, 0);
}

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    int frame;
};

/* The planner at its smallest; `more` and `most` (may be NULL): settings. `file`: its store, or
 * "": none. */
static inline enum tec_status open_planner(struct open *o, const char *file, const char *more,
                                           const char *most)
{
    char store[96];
    struct tec_diagnostics d;
    snprintf(store, sizeof store, "resources.mem.store=%s", *file ? file : "unused");
    const char *set[SETTINGS] = {store, SMALL, more, most};
    const struct tec_load_options load = {.path = PIPELINE,
                                          .root = TECTUM_SOURCE "/pipelines",
                                          .set = set,
                                          .n_set = most   ? 6
                                                   : more ? 5
                                                          : 4};
    *o = (struct open){.pipeline = NULL};
    tec_diagnostics_init(&d, &heap);
    enum tec_status status = tec_pipeline_load(&o->pipeline, &load, &heap, &d, &err);
    tec_diagnostics_finish(&d);
    REQUIRE(status == TEC_OK);
    const struct tec_engine_options options = {
        .pipeline = o->pipeline,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 1,
        .size = "tiny",
        .saturated = true,
        .forgets = !*file,
        .trouble = hear,
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()}};
    status = tec_engine_open(&o->engine, &options, &heap, &err);
    if (status != TEC_OK)
        tec_pipeline_free(o->pipeline);
    return status;
}

static inline void close_planner(struct open *o)
{
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
}

static inline struct tec_memory_counts counts(const struct open *o)
{
    return tec_memory_counts(o->engine->memories[0]);
}

struct answer {
    int n, tokens[PLAN];
};

/* Run one frame with whatever it asks for, to its end. */
static inline struct answer run(struct open *o, const struct tec_frame_input *input)
{
    struct answer a = {0};
    struct tec_loop *loop = o->engine->loop;
    const struct tec_frame_record *r = loop_frame(loop, input, 0, input ? 1 : 0);
    CHECK(!r->failed);
    for (int i = 0; i < 40 && tec_loop_live(loop) > 0; i++)
        (void)loop_frame(loop, NULL, 0, 0);
    CHECK_INT(tec_loop_live(loop), ==, 0);
    int64_t newest = -1;
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        if (u->id <= newest)
            continue;
        newest = u->id;
        a.n = u->count;
        REQUIRE(a.n <= PLAN);
        memcpy(a.tokens, u->tokens, (size_t)a.n * sizeof(int));
    }
    return a;
}

static inline enum tec_status see(struct open *o, const struct tec_value *values, size_t n,
                                  struct tec_frame_input *input)
{
    return tec_session_observe(o->engine->session, values, n, NULL, o->frame++, 0, input, NULL,
                               &err);
}

static inline struct tec_value text_value(const char *name, const char *text)
{
    return (struct tec_value){
        .name = name, .kind = TEC_VALUE_TEXT, .data = text, .bytes = strlen(text)};
}

/* A goal and changes; NULL means none. */
static inline struct answer ask(struct open *o, const char *goal, const char *changes)
{
    const struct tec_value values[] = {text_value("goal", goal),
                                       text_value("memory", changes ? changes : "")};
    struct tec_frame_input input;
    enum tec_status status = see(o, values, changes ? 2 : 1, &input);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    return run(o, &input);
}

/* Run frames without an observation until every segment has kept keys and values. */
static inline void settle(struct open *o)
{
    const struct timespec rest = {0, 2000000};
    uint32_t segment;
    for (int i = 0; i < 2000; i++) {
        (void)loop_frame(o->engine->loop, NULL, 0, 0);
        nanosleep(&rest, NULL);
        if (tec_store_missing(o->engine->memories[0]->store, &segment, 1) == 0)
            return;
    }
    CHECK(false); /* segments are kept */
}

static inline bool same(const struct answer *a, const struct answer *b)
{
    return a->n > 0 && a->n == b->n && !memcmp(a->tokens, b->tokens, (size_t)a->n * sizeof(int));
}

#endif
