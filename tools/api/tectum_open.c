/* tectum_open.c - the public interface: open an engine with a handle for each of its sessions, and
 * close it. */
#include "base/thread.h"
#include "tools/api/choose_device.h"
#include "tools/api/live.h"
#include "tools/api/root.h"
#include "tools/api/topology.h"

#include <stdlib.h>

static enum tec_status load(struct tec_live_shared *live, const struct tectum_options *o,
                            const char *root, struct tec_error *err)
{
    struct tec_diagnostics d;
    struct tec_load_options options = {.path = o->pipeline,
                                       .root = tec_arena_printf(&live->arena, "%s/pipelines", root),
                                       .adapter = o->adapter,
                                       .hub = o->hub,
                                       .bare = o->random_weights != 0,
                                       .embodiment = o->embodiment,
                                       .set = o->set,
                                       .n_set = o->n_set};
    if (!options.root)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    tec_diagnostics_init(&d, &live->heap);
    enum tec_status status = tec_pipeline_load(&live->pipeline, &options, &live->heap, &d, err);
    tec_diagnostics_finish(&d);
    return status;
}

static enum tec_status give_boxes(struct tectum *t, struct tec_error *err)
{
    struct tec_arena *arena = &t->live->arena;
    size_t state = (size_t)tec_session_state(t->session);
    size_t chunk = tec_engine_room(t->engine).chunk;
    bool ok = true;
    for (int i = 0; i < TEC_TRIPLE_PLACES * t->n_actions; i++) {
        struct tec_live_output *out =
            &t->actions[i / TEC_TRIPLE_PLACES].outputs[i % TEC_TRIPLE_PLACES];
        out->chunk = TEC_NEW(arena, chunk, float);
        out->state_raw = TEC_NEW(arena, state, double);
        ok = ok && out->chunk && out->state_raw;
    }
    t->ticks = TEC_NEW(arena, TEC_LIVE_FRAMES, _Atomic int64_t);
    if (!ok || !t->ticks)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for observations");
    return TEC_OK;
}

static void give_actions(struct tectum *t)
{
    const struct tec_loop_options *o = tec_loop_settings(t->engine->loop);
    t->n_actions = o->n_actions ? o->n_actions : 1;
    for (int i = 0; i < TEC_MAX_ACTIONS; i++) {
        tec_triple_init(&t->actions[i].outbox);
        t->actions[i].taken = -1;
    }
    for (int i = 0; i < t->n_actions; i++) {
        t->actions[i].name = o->actions[i].name;
        t->actions[i].deadline_ns = o->actions[i].deadline_ns;
        t->actions[i].watchdog = &t->live->runtime.sessions[t->index].watchdogs[i];
    }
}

static enum tec_status open_session(struct tec_live_shared *live, int index, struct tec_error *err)
{
    struct tectum *t = &live->sessions[index];
    *t = (struct tectum){.live = live,
                         .index = index,
                         .pipeline = live->pipeline,
                         .engine = live->engine,
                         .session = live->engine->sessions[index],
                         .tick = -1,
                         .released = -1,
                         .missed_up_to = -1,
                         .loss = {.number = -1}};
    tec_triple_init(&t->inbox);
    tec_triple_init(&t->lossbox);
    tec_asks_init(&t->asks);
    tec_transcript_init(&t->transcript);
    atomic_store(&t->blind, -1);
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->hand_lock, NULL);
    live->n_sessions = index + 1;
    live->runtime.sessions[index].asks = &t->asks;
    give_actions(t);
    TEC_TRY(give_boxes(t, err));
    return tec_transcript_attach(&t->transcript, t->engine, index, &live->arena, err);
}

static enum tec_status open_sessions(struct tec_live_shared *live, int actions,
                                     struct tec_error *err)
{
    size_t n = (size_t)live->engine->n_sessions;
    live->sessions = TEC_NEW(&live->arena, n, struct tectum);
    if (!live->sessions)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu sessions", n);
    TEC_TRY(tec_runtime_attach(&live->runtime, live->engine, &live->arena, err));
    TEC_TRY(tec_runtime_watch(&live->runtime, actions, &live->arena, err));
    for (size_t i = 0; i < n; i++)
        TEC_TRY(open_session(live, (int)i, err));
    live->gather_ns = tec_loop_settings(live->engine->loop)->gather_ns;
    return TEC_OK;
}

static enum tec_status open_engine(struct tec_live_shared *live, const struct tectum_options *o,
                                   struct tec_error *err)
{
    const char *root;
    TEC_TRY(tec_root_find(&root, o->root, &live->arena, err));
    TEC_TRY(load(live, o, root, err));
    const char *names[] = {o->weights, o->tokenizer, o->size, o->dtype, o->adapter, o->hub};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i] && !(names[i] = tec_arena_strdup(&live->arena, names[i])))
            return tec_fail(err, TEC_NO_MEMORY, "no memory for options");
    char note[200];
    struct tec_device_options device = {
        .threads = o->threads, .spin_us = -1, .tier = tec_tier_best()};
    TEC_TRY(tec_choose_device(&device, o->device, note, err));
    const struct tec_engine_options options = {.pipeline = live->pipeline,
                                               .root = root,
                                               .weights = names[0],
                                               .adapter = names[4],
                                               .hub = names[5],
                                               .random = o->random_weights != 0,
                                               .seed = o->seed,
                                               .size = names[2],
                                               .dtype = names[3],
                                               .tokenizer = names[1],
                                               .device = device,
                                               .actions = o->actions,
                                               .released = tec_runtime_released,
                                               .lost = tec_runtime_lost,
                                               .events = tec_runtime_events(&live->runtime),
                                               .user = &live->runtime};
    TEC_TRY(tec_engine_open(&live->engine, &options, &live->heap, err));
    TEC_TRY(tec_open_policy(&live->policy, live->pipeline, o->policy, root, &live->engine->topology,
                            NULL, 0, &live->heap, err));
    TEC_TRY(tec_open_fallback(&live->fallback, live->pipeline, root, &live->engine->topology,
                              &live->heap, err));
    tec_policy_set_fallback(live->policy, live->fallback);
    struct tec_planner planner = tec_policy_planner(live->policy);
    tec_loop_set_planner(live->engine->loop, &planner);
    TEC_TRY(open_sessions(live, o->actions, err));
    const struct tec_runtime_source source = tec_live_source(live);
    return tec_runtime_start(&live->runtime, &source, err);
}

struct opening {
    struct tec_live_shared *live;
    const struct tectum_options *options;
    struct tec_error *err;
    enum tec_status status;
};

static void *open_on_thread(void *user)
{
    struct opening *o = user;
    o->status = open_engine(o->live, o->options, o->err);
    return NULL;
}

/* The warm-up runs kernels, and a program's own thread need not have the stack for them. */
static enum tec_status open_apart(struct tec_live_shared *live,
                                  const struct tectum_options *options, struct tec_error *err)
{
    struct opening o = {.live = live, .options = options, .err = err};
    pthread_t thread;
    if (!tec_thread_start(&thread, open_on_thread, &o))
        return tec_fail(err, TEC_NO_MEMORY, "tectum_open: no memory for a thread");
    pthread_join(thread, NULL);
    return o.status;
}

static void close_engine(struct tec_live_shared *live)
{
    tec_runtime_stop(&live->runtime);
    tec_engine_close(live->engine);
    tec_policy_close(live->policy);
    tec_policy_close(live->fallback);
    tec_pipeline_free(live->pipeline);
    for (int i = 0; i < live->n_sessions; i++) {
        struct tectum *t = &live->sessions[i];
        tec_asks_finish(&t->asks);
        tec_transcript_finish(&t->transcript);
        pthread_mutex_destroy(&t->lock);
        pthread_mutex_destroy(&t->hand_lock);
    }
    tec_arena_finish(&live->arena);
    free(live);
}

enum tectum_status tectum_open(struct tectum **out, const struct tectum_options *options,
                               struct tectum_error *err)
{
    struct tec_error mine = {0};
    if (!out || !options || !options->pipeline)
        return tec_live_fail(err, TEC_INVALID,
                             "tectum_open: out, options and options->pipeline are needed");
    if (options->threads < 0 || options->n_set < 0 || (options->n_set && !options->set) ||
        options->actions < 0)
        return tec_live_fail(err, TEC_INVALID,
                             "tectum_open: threads, set, n_set or actions out of range");
    struct tec_live_shared *live = calloc(1, sizeof *live);
    if (!live)
        return tec_live_fail(err, TEC_NO_MEMORY, "tectum_open: no memory");
    tec_arena_init(&live->arena, &live->heap);
    const struct tec_runtime_listener listener = {tec_live_left, tec_live_lost, live};
    tec_runtime_init(&live->runtime, &listener);
    if (open_apart(live, options, &mine) != TEC_OK) {
        close_engine(live);
        return tec_live_convert(err, &mine);
    }
    *out = live->sessions;
    return TECTUM_OK;
}

void tectum_close(struct tectum **engine)
{
    struct tectum *t = engine ? *engine : NULL;
    if (!t)
        return;
    *engine = NULL;
    if (t->index == 0)
        close_engine(t->live);
}

int tectum_sessions(const struct tectum *t)
{
    return t ? t->live->n_sessions : 0;
}

struct tectum *tectum_session(struct tectum *t, int i)
{
    return t && i >= 0 && i < t->live->n_sessions ? &t->live->sessions[i] : NULL;
}
