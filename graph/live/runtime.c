/* runtime.c - the frame thread: one frame as every client runs it, and its start and end. */
#include "graph/live/runtime.h"

#include "base/thread.h"
#include "graph/live/turns.h"

#include <stdio.h>
#include <string.h>

void tec_runtime_init(struct tec_runtime *rt, const struct tec_runtime_listener *listener)
{
    memset(rt, 0, sizeof *rt); /* it is large, and a literal may be made on the stack first */
    rt->listener = *listener;
    rt->bell = &rt->work;
}

enum tec_status tec_runtime_record(struct tec_runtime *rt, struct tec_arena *arena,
                                   struct tec_error *err)
{
    int n = rt->engine ? tec_loop_settings(rt->engine->loop)->n_actions : 0;
    for (int s = 0; n && s < rt->engine->n_sessions; s++)
        for (int i = 0; i < n; i++)
            TEC_TRY(tec_seam_create(&rt->sessions[s].seams[i], rt->engine, i, arena, err));
    TEC_TRY(tec_recorder_create(&rt->recorder, arena, err));
    if (rt->engine)
        rt->recorder.n_nodes = rt->engine->topology.n_nodes;
    return TEC_OK;
}

/* A chunk leaves: how it joins the one before. */
static void join(struct tec_runtime *rt, const struct tec_event *e)
{
    const struct tec_loop_options *loop = tec_loop_settings(rt->engine->loop);
    for (int i = 0; i < loop->n_actions; i++) {
        struct tec_seam *seam = &rt->sessions[e->tick->session].seams[i];
        if (loop->actions[i].node != e->node || !e->chunk || !seam->before)
            continue;
        float jump = tec_seam_join(seam, e->chunk, e->since_ns, e->t_ns);
        if (jump >= 0.0F)
            tec_recorder_seam(&rt->recorder, e, jump);
        return;
    }
}

/* Before it is counted: whoever sees the count sees the text (figures.c). */
static void keep_unread(struct tec_runtime *rt, const struct tec_event *e)
{
    char whose[32] = "";
    if (tec_runtime_unread(rt))
        return;
    if (rt->engine->n_sessions > 1)
        snprintf(whose, sizeof whose, ", session %d", e->tick->session);
    snprintf(rt->unread, sizeof rt->unread, "frame %lld%s: %s", (long long)e->tick->frame, whose,
             e->from);
}

const char *tec_runtime_unread(const struct tec_runtime *rt)
{
    return atomic_load_explicit(&rt->figures.unread, memory_order_acquire) > 0 ? rt->unread : NULL;
}

static void hear(void *runtime, const struct tec_event *event)
{
    struct tec_runtime *rt = runtime;
    tec_recorder_emit(&rt->recorder, event);
    if (!rt->engine) /* the warm-up */
        return;
    if (rt->deciding)
        tec_deciding_hear(rt->deciding, event);
    if (event->kind == TEC_EVENT_UNREAD)
        keep_unread(rt, event);
    tec_figures_count(&rt->figures, event);
    bool again = !event->ring && event->done > 0; /* a chunk goes on: it joins nothing */
    if (event->kind == TEC_EVENT_RELEASE && !again)
        join(rt, event);
}

struct tec_event_sink tec_runtime_events(struct tec_runtime *rt)
{
    return (struct tec_event_sink){hear, rt};
}

enum tec_status tec_runtime_attach(struct tec_runtime *rt, struct tec_engine *engine,
                                   struct tec_arena *arena, struct tec_error *err)
{
    for (int i = 0; i < engine->n_sessions; i++)
        TEC_TRY(tec_observation_records_create(&rt->sessions[i].records, engine, arena, err));
    rt->engine = engine;
    return TEC_OK;
}

enum tec_status tec_runtime_watch(struct tec_runtime *rt, int actions, struct tec_arena *arena,
                                  struct tec_error *err)
{
    int n = tec_loop_settings(rt->engine->loop)->n_actions;
    n = n ? n : 1;
    for (int s = 0; s < rt->engine->n_sessions; s++)
        for (int i = 0; i < n; i++)
            TEC_TRY(tec_watchdog_create(&rt->sessions[s].watchdogs[i], rt->engine, s, i, actions,
                                        arena, err));
    rt->n_watchdogs = n;
    return TEC_OK;
}

void tec_runtime_unwatch(struct tec_runtime *rt)
{
    rt->n_watchdogs = 0;
}

/* --- a frame --------------------------------------------------------------------------------- */

void tec_runtime_released(void *runtime, int action, const float *chunk,
                          const struct tec_frame_record *record)
{
    struct tec_runtime *rt = runtime;
    struct tec_runtime_session *s = &rt->sessions[record->session];
    const struct tec_runtime_left left = {
        .action = action,
        .session = record->session,
        .chunk = chunk,
        .record = record,
        .seen = tec_observation_records_find(&s->records,
                                             chunk ? record->actions[action].seen : record->frame)};
    if (!left.seen)
        return;
    rt->listener.left(rt->listener.user, &left);
    if (rt->n_watchdogs)
        tec_watchdog_post(&s->watchdogs[action], s->acts_for, record, chunk, left.seen);
}

void tec_runtime_lost(void *runtime, int session, int64_t seen, int64_t captured_ns)
{
    struct tec_runtime *rt = runtime;
    const struct tec_observation_record *of =
        tec_observation_records_find(&rt->sessions[session].records, seen);
    (void)captured_ns; /* the record has it */
    if (of && rt->listener.lost)
        rt->listener.lost(rt->listener.user, session, of);
}

const struct tec_frame_record *tec_runtime_frame(struct tec_runtime *rt,
                                                 const struct tec_runtime_seen *seen,
                                                 struct tec_tick *ticks, int n)
{
    struct tec_loop *loop = rt->engine->loop;
    const struct tec_frame_input *inputs[TEC_MAX_SESSIONS] = {NULL};
    rt->began_ns = tec_clock_now(&rt->clock);
    for (int i = 0; i < n; i++) {
        struct tec_runtime_session *s = &rt->sessions[ticks[i].session];
        inputs[i] = seen[i].input;
        s->acts_for = seen[i].acts_for;
        if (seen[i].input)
            tec_observation_records_put(&s->records, ticks[i].frame, seen[i].number,
                                        seen[i].input->captured_ns, seen[i].state_raw);
        if (s->asks)
            tec_asks_put(s->asks, &ticks[i], seen[i].input != NULL);
    }
    tec_loop_run_sessions(loop, inputs, ticks, n);
    for (int i = 0; i < n; i++) {
        struct tec_runtime_session *s = &rt->sessions[ticks[i].session];
        for (int w = 0; w < rt->n_watchdogs; w++)
            tec_watchdog_flush(&s->watchdogs[w]);
        if (s->asks)
            tec_asks_settle(s->asks);
    }
    const struct tec_frame_record *record = tec_loop_record(loop, 0);
    rt->launched = record->n_launches > 0;
    rt->ended_ns = tec_clock_now(&rt->clock);
    return record;
}

/* --- the thread ------------------------------------------------------------------------------- */

void tec_runtime_work(struct tec_runtime *rt, const struct tec_runtime_source *source)
{
    struct tec_turns alone = {.n = 1, .of = {rt}, .since = {-1}};
    rt->source = *source;
    tec_turns_work(&alone);
}

void tec_runtime_look(struct tec_runtime *rt, int64_t at_ns)
{
    rt->look_ns = at_ns;
}

/* Its launches were warmed up by another thread, on the stack of that one. */
static void *run(void *user)
{
    struct tec_runtime *rt = user;
    const struct tec_runtime_source source = rt->source;
    tec_thread_warm_stack();
    tec_runtime_work(rt, &source);
    return NULL;
}

enum tec_status tec_runtime_start(struct tec_runtime *rt, const struct tec_runtime_source *source,
                                  struct tec_error *err)
{
    rt->source = *source;
    atomic_store(&rt->ending, false);
    rt->started = tec_thread_start(&rt->thread, run, rt);
    return rt->started ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the frame thread");
}

void tec_runtime_ring(struct tec_runtime *rt)
{
    tec_bell_ring(rt->bell);
}

void tec_runtime_end(struct tec_runtime *rt)
{
    atomic_store(&rt->ending, true);
    tec_bell_ring(rt->bell);
}

void tec_runtime_stop(struct tec_runtime *rt)
{
    if (!rt->started)
        return;
    tec_runtime_end(rt);
    pthread_join(rt->thread, NULL);
    rt->started = false;
}
