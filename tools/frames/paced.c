/* paced.c - runs frames at the pipeline's period on the real clock: a frame thread prepares and
 * runs frames, while the caller's thread keeps the ticks and hands out actions by their
 * deadlines. */
#include "tools/frames/paced.h"

#include <string.h>

enum { PENDING = 256 };

enum state { READING, IDLE, ORDERED, DONE };

/* A tick that has been handed out but not yet reported. */
struct pending {
    int64_t frame;
    bool opened;                  /* whether the tick opened a frame */
    struct tec_paced_tick *ticks; /* [n_sessions] */
    double **actions;             /* [n_sessions, n_watchdogs]: [actions, columns] of each node */
};

struct paced {
    struct tec_paced_options o;
    struct tec_paced_counts *counts;
    struct tec_arena arena;
    struct tec_clock clock;
    struct tec_runtime *runtime; /* of the frames, with watchdogs */
    int n_sessions;
    int64_t period_ns, deadlines_ns[TEC_MAX_ACTIONS];

    /* Says which thread owns the fields below: the frame thread in ORDERED, otherwise the caller.
     */
    _Atomic int state;
    struct tec_bell done;
    int64_t frame, tick_ns, ordered_ns;
    bool only_read; /* skip the inputs of that frame and run nothing */
    enum tec_status status;
    struct tec_error err;
    bool ran; /* what came of it is the sessions' `out` */

    /* Fields of the frame thread alone. */
    struct tec_inputs_frame given[TEC_MAX_SESSIONS];
    int64_t came_ns; /* when those had been read */
    enum tec_status read_status;
    struct tec_error read_err;
    /* Results of the frame thread: how many frames' inputs have been read, and how many there are
     * (INT64_MAX: not known). */
    _Atomic int64_t read, inputs;

    /* Fields of the caller's thread alone. */
    int n_pending;
    struct pending pending[PENDING];
    bool acts;
    enum tec_cause cause; /* of the newest frame that has ended and missed; else HOST */
};

/* --- the frame thread ------------------------------------------------------------------------ */

/* The next inputs of every session. */
static void read_one(struct paced *p)
{
    bool ended = false;
    for (int i = 0; i < p->n_sessions && p->read_status == TEC_OK; i++) {
        p->read_status = tec_inputs_next(p->o.inputs[i], &p->given[i], &p->read_err);
        ended |= p->read_status == TEC_OK && p->given[i].ended;
    }
    p->came_ns = tec_clock_now(&p->clock);
    if (p->read_status == TEC_OK && ended)
        atomic_store(&p->inputs, atomic_load(&p->read));
    else
        atomic_fetch_add(&p->read, 1);
}

static bool readable(const struct paced *p)
{
    return p->read_status == TEC_OK && atomic_load(&p->inputs) == INT64_MAX;
}

/* How long the frame's inputs were waited for. The caller was there to order it in time, or else
 * nobody was, and inputs that had come were not read either. */
static int64_t waited(const struct paced *p)
{
    return p->came_ns > p->ordered_ns ? p->came_ns - p->ordered_ns : 0;
}

static enum tec_status run_ordered(struct paced *p, struct tec_error *err)
{
    struct tec_frames *f = p->o.frames;
    struct tec_frame_given values[TEC_MAX_SESSIONS] = {{NULL, 0}};
    const float *noise = NULL;
    int failed = 0;
    bool observed = false;
    p->ran = false;
    while (atomic_load(&p->read) <= p->frame && readable(p))
        read_one(p);
    if (p->read_status != TEC_OK)
        *err = p->read_err;
    if (p->read_status != TEC_OK || p->only_read || atomic_load(&p->inputs) <= p->frame)
        return p->read_status;
    f->frame = p->frame;
    for (int i = 0; i < p->n_sessions; i++) {
        tec_frames_ask(f, i, &p->given[i].asks);
        if (!p->given[i].none)
            values[i] = (struct tec_frame_given){p->given[i].values, p->given[i].n};
        observed |= !p->given[i].none;
    }
    if (p->o.noise && observed)
        TEC_TRY(tec_frame_noise_file_at(p->o.noise, p->frame, &noise, err));
    enum tec_status status = tec_frames_tick(f, p->tick_ns, waited(p), values, noise, &failed, err);
    p->ran = status == TEC_OK;
    return tec_context(err, status, "%.180s", tec_inputs_place(p->o.inputs[failed]));
}

/* The runtime's source: the first inputs, then a frame for each order. */
static bool take_order(void *user)
{
    struct paced *p = user;
    int state = atomic_load(&p->state);
    bool more = state == READING;
    if (state != READING && state != ORDERED)
        return false;
    if (state == ORDERED) {
        p->status = run_ordered(p, &p->err);
        more = p->status == TEC_OK && p->ran;
        atomic_store(&p->state, DONE);
        tec_bell_ring(&p->done);
    }
    if (more && readable(p)) /* read inputs before their tick, as a camera would */
        read_one(p);
    if (state == READING) {
        atomic_store(&p->state, IDLE);
        tec_bell_ring(&p->done);
    }
    return true;
}

/* --- ticks ------------------------------------------------------------------------------------ */

static void order(struct paced *p, int64_t frame, int64_t tick_ns, bool only_read)
{
    p->frame = frame;
    p->tick_ns = tick_ns;
    p->ordered_ns = tec_clock_now(&p->clock);
    p->only_read = only_read;
    atomic_store(&p->state, ORDERED);
    tec_runtime_ring(p->runtime);
}

/* One session's tick; `ran`: its frame has ended. */
static enum tec_status tell_one(struct paced *p, struct tec_paced_tick *tick, bool ran,
                                struct tec_error *err)
{
    const struct tec_frame_out *out = ran ? &p->o.frames->sessions[tick->session].out : NULL;
    const struct tec_frame_record *r = out ? out->record : NULL;
    tick->out = out;
    if (r)
        p->cause = r->cause ? r->cause : TEC_CAUSE_HOST;
    struct tec_beyond beyond = {.n = 0};
    bool fresh = true, left_out = false, stopped = false;
    for (int i = 0; i < tick->n; i++) {
        fresh &= tick->given[i].source == TEC_SOURCE_FRESH || tick->given[i].left_out;
        left_out |= tick->given[i].left_out;
        stopped |= tick->given[i].source == TEC_SOURCE_STOPPED;
        if (!tec_beyond_refused(&beyond))
            beyond = tick->given[i].beyond.n ? tick->given[i].beyond : beyond;
    }
    tick->missed = !r || r->missed || (p->acts && !fresh && !r->filling);
    tick->cause = !tick->missed                                    ? TEC_CAUSE_NONE
                  : tec_beyond_refused(&beyond)                    ? TEC_CAUSE_LIMITS
                  : r && !out->observed && !(r->depth && r->cause) ? TEC_CAUSE_INPUT
                  : r && !r->cause && stopped                      ? TEC_CAUSE_STOPPED
                  : r                                              ? r->cause
                                                                   : p->cause;
    p->counts->ticks++;
    p->counts->skipped += !r;
    p->counts->missed += tick->missed;
    p->counts->beyond += beyond.n > 0;
    p->counts->left_out += left_out;
    p->counts->stopped += stopped;
    p->counts->causes[tick->cause]++;
    return p->o.tell(p->o.user, tick, err);
}

static enum tec_status tell(struct paced *p, struct tec_paced_tick *ticks, bool ran,
                            struct tec_error *err)
{
    for (int i = 0; i < p->n_sessions; i++)
        TEC_TRY(tell_one(p, &ticks[i], ran, err));
    return TEC_OK;
}

static void drop_first(struct paced *p)
{
    struct pending first = p->pending[0];
    memmove(&p->pending[0], &p->pending[1], (size_t)--p->n_pending * sizeof first);
    p->pending[p->n_pending] = first; /* keep its memory for reuse */
}

/* Report the ticks that are over: those that lie before the running frame and are known to have had
 * inputs. */
static enum tec_status tell_over(struct paced *p, bool ran, struct tec_error *err)
{
    while (p->n_pending > 0) {
        struct pending *first = &p->pending[0];
        int64_t frame = first->frame;
        if (frame < atomic_load(&p->inputs)) {
            if ((first->opened && !ran) || (!first->opened && frame >= atomic_load(&p->read)))
                return TEC_OK;
            TEC_TRY(tell(p, first->ticks, first->opened, err));
            ran = !first->opened && ran;
        }
        drop_first(p);
    }
    return TEC_OK;
}

/* Take over what the frame thread has finished since the last call. */
static enum tec_status settle(struct paced *p, struct tec_error *err)
{
    if (atomic_load(&p->state) != DONE)
        return TEC_OK;
    if (p->status != TEC_OK)
        *err = p->err;
    enum tec_status status = p->status;
    if (status == TEC_OK)
        status = tell_over(p, p->ran, err);
    atomic_store(&p->state, IDLE);
    return status;
}

/* Wait until that time or, with `idle`, until the frame thread is idle. */
static enum tec_status await(struct paced *p, int64_t until_ns, bool idle, struct tec_error *err)
{
    for (;;) {
        uint32_t seen = atomic_load(&p->done.rings);
        TEC_TRY(settle(p, err));
        if (tec_clock_now(&p->clock) >= until_ns || (idle && atomic_load(&p->state) == IDLE))
            return TEC_OK;
        tec_bell_wait(&p->done, seen, until_ns);
    }
}

/* What the robot is given of one action node, by its deadline at the latest. */
static struct tec_paced_given hand_one(struct paced *p, const struct tec_paced_tick *tick, int at)
{
    int64_t due = tick->tick_ns + p->deadlines_ns[at];
    struct tec_watchdog *watchdog = &p->runtime->sessions[tick->session].watchdogs[at];
    struct tec_watchdog_given given = {
        .handed = {.source = TEC_SOURCE_NONE}, .handed_ns = tick->tick_ns, .age_ns = -1};
    if (p->acts)
        tec_watchdog_hand(watchdog, tick->frame, due, &given);
    double *actions =
        p->pending[p->n_pending].actions[tick->session * p->runtime->n_watchdogs + at];
    if (given.handed.n > 0)
        memcpy(actions, given.handed.actions,
               (size_t)given.handed.n * (size_t)watchdog->columns * sizeof *actions);
    return (struct tec_paced_given){.deadline_ns = due,
                                    .source = given.handed.source,
                                    .rows = given.handed.n,
                                    .columns = watchdog->columns,
                                    .actions = actions,
                                    .handed_ns = given.handed_ns,
                                    .age_ns = given.age_ns,
                                    .beyond = given.handed.beyond,
                                    .left_out = given.handed.left_out};
}

/* Hands out the action nodes' chunks, the earliest deadline first, each to all sessions. */
static enum tec_status hand(struct paced *p, int64_t frame, int64_t tick_ns, bool opened,
                            struct tec_error *err)
{
    bool handed[TEC_MAX_ACTIONS] = {false};
    struct pending *last = &p->pending[p->n_pending];
    last->frame = frame;
    last->opened = opened;
    for (int s = 0; s < p->n_sessions; s++)
        last->ticks[s] = (struct tec_paced_tick){.frame = frame,
                                                 .tick_ns = tick_ns,
                                                 .session = s,
                                                 .n = p->acts ? p->runtime->n_watchdogs : 0,
                                                 .given = last->ticks[s].given};
    for (int n = 0; n < p->runtime->n_watchdogs; n++) {
        int at = -1;
        for (int i = 0; i < p->runtime->n_watchdogs; i++)
            if (!handed[i] && (at < 0 || p->deadlines_ns[i] < p->deadlines_ns[at]))
                at = i;
        handed[at] = true;
        for (int s = 0; s < p->n_sessions; s++)
            last->ticks[s].given[at] = hand_one(p, &last->ticks[s], at);
    }
    if (!opened && p->n_pending >= PENDING - 1) /* the frame does not end: report at once */
        return tell(p, last->ticks, false, err);
    p->n_pending++;
    return TEC_OK;
}

static enum tec_status run_ticks(struct paced *p, struct tec_error *err)
{
    TEC_TRY(await(p, INT64_MAX, true, err));
    int64_t first = tec_clock_now(&p->clock), n = 0;
    p->o.frames->began_ns = first;
    for (; n < p->o.most; n++) {
        int64_t tick_ns = first + n * p->period_ns;
        TEC_TRY(await(p, tick_ns, false, err));
        if (n >= atomic_load(&p->inputs) || (p->o.over && *p->o.over))
            break;
        bool opens = atomic_load(&p->state) == IDLE;
        if (opens)
            order(p, n, tick_ns, false);
        TEC_TRY(hand(p, n, tick_ns, opens, err));
    }
    TEC_TRY(await(p, INT64_MAX, true, err));
    if (p->n_pending > 0) { /* check whether skipped ticks had inputs */
        order(p, n - 1, 0, true);
        TEC_TRY(await(p, INT64_MAX, true, err));
    }
    p->o.frames->frame = n;
    return TEC_OK;
}

static bool take_pending(struct paced *p, struct pending *pending)
{
    const struct tec_runtime *rt = p->runtime;
    size_t sessions = (size_t)p->n_sessions, nodes = (size_t)rt->n_watchdogs;
    struct tec_paced_given *given = TEC_NEW(&p->arena, sessions * nodes, struct tec_paced_given);
    pending->ticks = TEC_NEW(&p->arena, sessions, struct tec_paced_tick);
    pending->actions = TEC_NEW(&p->arena, sessions * nodes, double *);
    bool ok = given && pending->ticks && pending->actions;
    for (int s = 0; s < p->n_sessions && ok; s++) {
        pending->ticks[s].given = given + (size_t)s * nodes;
        for (int i = 0; i < rt->n_watchdogs && ok; i++) {
            const struct tec_watchdog *o = &rt->sessions[s].watchdogs[i];
            size_t n = (size_t)o->actions * (size_t)o->columns;
            double *actions = TEC_NEW(&p->arena, n, double);
            pending->actions[s * rt->n_watchdogs + i] = actions;
            ok = actions != NULL;
        }
    }
    return ok;
}

static enum tec_status take_memory(struct paced *p, struct tec_error *err)
{
    TEC_TRY(tec_runtime_watch(p->runtime, p->o.actions, &p->arena, err));
    for (int i = 0; i < PENDING; i++)
        if (!take_pending(p, &p->pending[i]))
            return tec_fail(err, TEC_NO_MEMORY, "no memory for ticks");
    return TEC_OK;
}

static enum tec_status schedule(struct paced *p, struct tec_error *err)
{
    const struct tec_scheduling *how = p->o.scheduling;
    if (!how)
        return TEC_OK;
    const struct tec_scheduling above = tec_scheduling_above(how);
    TEC_TRY(tec_engine_schedule(p->o.frames->opened.engine, p->runtime->thread, how, err));
    return tec_thread_schedule(pthread_self(), &above, -1, err);
}

static enum tec_status run(struct paced *p, struct tec_error *err)
{
    const struct tec_engine *e = p->o.frames->opened.engine;
    const struct tec_loop_options *loop = tec_loop_settings(e->loop);
    const struct tec_runtime_source source = {.take = take_order, .user = p};
    p->period_ns = e->topology.period_us * 1000;
    p->acts = loop->n_actions > 0;
    TEC_TRY(take_memory(p, err));
    for (int i = 0; i < p->runtime->n_watchdogs; i++) {
        int64_t after = loop->actions[i].deadline_ns;
        p->deadlines_ns[i] = after ? after : p->period_ns;
    }
    TEC_TRY(tec_runtime_start(p->runtime, &source, err));
    TEC_TRY(schedule(p, err));
    return run_ticks(p, err);
}

enum tec_status tec_paced_run(const struct tec_paced_options *options,
                              struct tec_paced_counts *counts, struct tec_heap *heap,
                              struct tec_error *err)
{
    struct paced *p = tec_heap_get(heap, sizeof *p);
    if (!p)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for paced frames");
    *p = (struct paced){.o = *options,
                        .counts = counts,
                        .runtime = &options->frames->runtime,
                        .n_sessions = options->frames->n_sessions,
                        .inputs = INT64_MAX,
                        .cause = TEC_CAUSE_HOST};
    *counts = (struct tec_paced_counts){.ticks = 0};
    tec_arena_init(&p->arena, heap);
    enum tec_status status = run(p, err);
    tec_runtime_stop(p->runtime);
    tec_runtime_unwatch(p->runtime);
    tec_arena_finish(&p->arena);
    tec_heap_put(heap, p);
    return status;
}
