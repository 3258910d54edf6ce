/* worker.c - the engine thread of the server: it takes jobs for their sessions, runs a frame of
 * what has come, and frames of unfinished language while there is nothing. */
#include "tools/serve/worker.h"

#include "tools/serve/worker_own.h"

#include <stdio.h>
#include <string.h>

/* --- what leaves in a frame ------------------------------------------------------------------- */

/* A chunk of an action node besides the first: where a row of it is none, or the robot may not
 * carry it out, the reply is without it. */
static void take_other(struct tec_worker *w, const struct tec_worker_session *s,
                       const struct tec_runtime_left *left)
{
    struct tec_worker_job *job = &w->jobs[s->job];
    struct tec_beyond beyond;
    const int *shape = w->others[left->action];
    int rows = tec_session_act_on(tec_engine_session_at(w->opened.engine, s->index, left->action),
                                  left->seen->state_raw, left->chunk, w->actions, &beyond);
    job->made[left->action] = rows >= shape[0] && !tec_beyond_refused(&beyond);
    memcpy(job->actions[left->action], w->actions,
           (size_t)shape[0] * (size_t)shape[1] * sizeof *w->actions);
}

static void take_first(struct tec_worker *w, struct tec_worker_session *s,
                       const struct tec_runtime_left *left)
{
    struct tec_worker_job *job = &w->jobs[s->job];
    struct tec_job *j = &w->exchange->jobs[s->job];
    const struct tec_action_record *a = &left->record->actions[0];
    s->good_rows =
        tec_session_act_on(s->session, left->seen->state_raw, left->chunk, w->actions, &j->beyond);
    if (s->good_rows < w->rows && !tec_beyond_refused(&j->beyond))
        tec_session_judge(s->session, left->chunk, s->good_rows, s->why, sizeof s->why);
    job->policy_ms = (double)(a->release_ns - s->began_ns) / 1e6;
    job->left_ns = a->release_ns;
    job->missed = a->missed;
    job->chunk_id = left->seen->number;
    job->age_frames = (int)(left->record->frame - a->seen);
    memcpy(job->actions[0], w->actions, (size_t)w->rows * (size_t)w->columns * sizeof *w->actions);
    s->acted = s->holds = true;
    j->captured_ns = a->captured_ns;
    j->released_ns = a->release_ns;
    j->slow = job->missed;
    j->chunk_id = job->chunk_id;
}

/* With the robot's actions [rows, columns], which w->actions has; rows 0: nobody asked for them. */
static void record_left(const struct tec_worker *w, const struct tec_runtime_left *left, int rows,
                        int columns)
{
    const struct tec_action_record *a = &left->record->actions[left->action];
    const struct tec_recorded_chunk one = {.action = left->action,
                                           .session = left->session,
                                           .frame = left->record->frame,
                                           .seen = left->seen->number,
                                           .release_ns = a->release_ns,
                                           .age_us = a->age_us,
                                           .late = a->missed,
                                           .chunk = left->chunk,
                                           .actions = rows ? w->actions : NULL,
                                           .rows = rows,
                                           .columns = columns};
    tec_recording_left(w->recording, &one);
}

void tec_worker_left(void *user, const struct tec_runtime_left *left)
{
    struct tec_worker *w = user;
    struct tec_worker_session *s = &w->sessions[left->session];
    const int *shape = w->others[left->action];
    if (s->job < 0) {
        record_left(w, left, 0, 0);
        return;
    }
    if (left->action)
        take_other(w, s, left);
    else
        take_first(w, s, left);
    record_left(w, left, left->action ? shape[0] : w->rows, left->action ? shape[1] : w->columns);
    if (left->record->to_come == 0 && s->holds)
        tec_worker_send(w, s);
}

/* The model ended the actions of the request's own observation early; a ring is of one session. */
void tec_worker_lost(void *user, const struct tec_observation_record *seen)
{
    struct tec_worker *w = user;
    struct tec_worker_session *s = w->sessions;
    s->lost |= s->job >= 0 && seen->number == s->number;
}

/* --- a frame ---------------------------------------------------------------------------------- */

/* The tick of a request is the moment at which it was complete, so that waiting and decoding count
 * towards its deadlines. */
static void count_from_request(const struct tec_worker *w, int job, struct tec_tick *tick)
{
    const struct tec_job *j = &w->exchange->jobs[job];
    const struct tec_loop_options *loop = tec_loop_settings(w->opened.engine->loop);
    int64_t deadline_ns = loop->n_actions ? loop->actions[0].deadline_ns : 0;
    tick->late_ns = tick->tick_ns - j->picked_ns;
    tick->tick_ns = j->received_ns;
    tick->deadline_ns = j->due_ns ? j->due_ns : deadline_ns > 0 ? j->received_ns + deadline_ns : -1;
}

/* Make the tick that the loop gets: a job's request replaces the one that its node would start. Of
 * several sessions each counts the frames that it was in, so that texts come every so many frames
 * of their own robot. */
static struct tec_tick make_tick(struct tec_worker *w, struct tec_worker_session *s)
{
    const struct tec_loop *loop = w->opened.engine->loop;
    struct tec_tick tick = tec_loop_tick(loop, tec_clock_now(&w->clock), 0);
    if (w->n_sessions > 1) {
        tick.session = s->index;
        tick.frame = s->frame++;
        tick.spawn = tec_loop_spawns(loop, tick.frame);
    }
    if (s->texts.anew)
        s->texts.from = tick.frame;
    s->texts.anew = false;
    tick.cancels = s->cancels;
    tick.n_cancels = s->n_cancels;
    if (s->job >= 0)
        count_from_request(w, s->job, &tick);
    if (!s->text)
        return tick;
    tick.mute = 1U << s->ask.decoder;
    tick.spawn &= ~tick.mute;
    tick.asks = &s->ask;
    tick.n_asks = 1;
    return tick;
}

static void record_tick(const struct tec_worker *w, struct tec_worker_session *s,
                        const struct tec_tick *tick)
{
    const struct tec_flow *flow = &w->opened.engine->model->flow;
    const struct tec_recorded_tick one = {.session = s->index,
                                          .number = s->number,
                                          .observed = s->job >= 0,
                                          .reset = s->reset,
                                          .noise = s->job >= 0 ? s->given_noise : NULL,
                                          .noise_n = flow->horizon * flow->dim,
                                          .tick = tick};
    if (w->recording)
        tec_recording_tick(w->recording, &one);
    s->reset = TEC_RESET_NONE;
}

/* One without a job is in a frame where nobody has any, and where texts of it are to be given up.
 */
static bool takes_part(const struct tec_worker_session *s, bool asked)
{
    return s->job >= 0 || !asked || s->n_cancels > 0;
}

/* The sessions of a frame and their ticks, whose deadline is the earliest first; returns how many.
 */
static int make_ticks(struct tec_worker *w, bool asked, struct tec_worker_session **in,
                      struct tec_tick *ticks)
{
    int n = 0;
    for (int i = 0; i < w->n_sessions; i++) {
        struct tec_worker_session *s = &w->sessions[i];
        int at = n;
        if (!takes_part(s, asked))
            continue;
        const struct tec_tick tick = make_tick(w, s);
        uint64_t due = (uint64_t)tick.deadline_ns; /* none, -1, is behind all others */
        for (; at > 0 && due < (uint64_t)ticks[at - 1].deadline_ns; at--) {
            ticks[at] = ticks[at - 1];
            in[at] = in[at - 1];
        }
        ticks[at] = tick;
        in[at] = s;
        n++;
    }
    return n;
}

/* Run the loop's frame of the jobs that sessions have; of all sessions where none has one. */
static void run_ticks(struct tec_worker *w, bool asked)
{
    struct tec_worker_session *in[TEC_MAX_SESSIONS];
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    struct tec_runtime_seen seen[TEC_MAX_SESSIONS];
    int n = make_ticks(w, asked, in, ticks);
    for (int i = 0; i < n; i++) {
        seen[i] = (struct tec_runtime_seen){.acts_for = in[i]->number};
        if (in[i]->job >= 0)
            seen[i] = (struct tec_runtime_seen){&in[i]->input, in[i]->number,
                                                tec_session_observation(in[i]->session)->state_raw,
                                                in[i]->number};
        record_tick(w, in[i], &ticks[i]);
    }
    tec_runtime_frame(&w->runtime, seen, ticks, n);
    for (int i = 0; i < n; i++) {
        in[i]->record = tec_loop_record(w->opened.engine->loop, i);
        tec_recording_frame(w->recording, in[i]->record);
        in[i]->n_cancels = 0;
        if (in[i]->job >= 0 && in[i]->holds)
            tec_worker_send(w, in[i]);
    }
}

/* A ring that gives no actions is given the same observation again, until it gives some or until
 * the actions of that observation are lost, for they would be lost again. Once the ring gives
 * actions in every frame, actions that end early are the request's own. */
static void fill_ring(struct tec_worker *w, int job)
{
    struct tec_worker_session *s = w->sessions;
    s->lost |= s->record->cause == TEC_CAUSE_MODEL;
    for (int i = 0; i < w->stages && !s->acted && !s->lost && !tec_worker_expired(w, job); i++) {
        run_ticks(w, true);
        if (s->record->failed)
            break;
        s->lost |= s->record->cause == TEC_CAUSE_MODEL;
    }
}

/* Count a miss if the robot was not given the request's own actions by the deadline. */
static void note_miss(struct tec_worker *w, const struct tec_worker_session *s)
{
    const struct tec_worker_job *job = &w->jobs[s->taken];
    const struct tec_frame_record *r = s->record;
    int64_t due_ns = job->due_ns ? job->due_ns : r->actions[0].deadline_ns;
    int64_t until_ns = s->acted ? r->actions[0].release_ns : tec_clock_now(&w->clock);
    bool missed = job->by_watch || (s->acted ? job->missed : due_ns > 0);
    if (job->wants_actions && (missed || r->cause == TEC_CAUSE_MODEL))
        tec_safety_miss(&w->exchange->safety, r->frame, r->cause, until_ns - due_ns);
}

/* The frame is over: what becomes of a session's job that has not left in it. */
static void settle(struct tec_worker *w, const struct tec_worker_session *s)
{
    struct tec_error err;
    int job = s->taken;
    if (!s->acted && s->lost) {
        w->exchange->jobs[job].lost = true;
        tec_worker_answer_without(w, job);
    } else if (!s->acted && (w->jobs[job].wants_actions || !s->text)) {
        tec_fail(&err, TEC_UNSUPPORTED, "pipeline %s made no actions in this frame",
                 w->opened.pipeline->name);
        tec_worker_fail(w, job, &err);
    } else if (s->job >= 0) {
        tec_worker_await_text(w, s, job);
    }
}

/* Run one frame, for the jobs that sessions have or without an observation. */
static void run_frame(struct tec_worker *w)
{
    bool asked = false;
    struct tec_error err;
    for (int i = 0; i < w->n_sessions; i++)
        asked |= w->sessions[i].taken >= 0;
    run_ticks(w, asked);
    if (w->stages && asked)
        fill_ring(w, w->sessions[0].taken);
    for (int i = 0; i < w->n_sessions; i++)
        if (w->sessions[i].taken >= 0)
            note_miss(w, &w->sessions[i]);
    if (tec_engine_failure(w->opened.engine, &err) != TEC_OK) {
        tec_worker_lose(w, &err);
        return;
    }
    for (int i = 0; i < w->n_sessions; i++) {
        if (w->sessions[i].taken >= 0)
            settle(w, &w->sessions[i]);
        w->sessions[i].taken = w->sessions[i].job = -1;
        w->sessions[i].text = false;
    }
    tec_worker_tell_texts(w);
}

/* --- jobs for sessions ------------------------------------------------------------------------ */

/* The session of the client whose request was read: the one that it has, else one that is nobody's,
 * else the one that was not asked for longest. */
static struct tec_worker_session *session_of(struct tec_worker *w, int job)
{
    struct tec_worker_session *oldest = w->sessions;
    for (int i = 0; i < w->n_sessions; i++) {
        if (tec_worker_belongs(w, &w->sessions[i], job))
            return &w->sessions[i];
        if (w->sessions[i].asked_ns < oldest->asked_ns)
            oldest = &w->sessions[i];
    }
    return oldest;
}

/* The observation is prepared: the job is in the session's next frame. */
static void begin(struct tec_worker *w, struct tec_worker_session *s, int job)
{
    struct tec_worker_job *to = &w->jobs[job];
    const struct tec_job *j = &w->exchange->jobs[job];
    if (w->stages && s->fresh) {
        tec_loop_reset(w->opened.engine->loop);
        s->texts.anew = true; /* frames are numbered from 0 */
    }
    if (s->fresh)
        s->reset = w->stages ? TEC_RESET_ALL : TEC_RESET_SESSION;
    s->client = j->client;
    snprintf(s->name, sizeof s->name, "%s", w->request.session ? w->request.session : "");
    s->number = to->chunk_id = s->observations++;
    s->asked_ns = s->began_ns = tec_clock_now(&w->clock);
    s->taken = s->job = job;
    s->text = to->wants_text;
    s->acted = s->holds = s->lost = false;
    to->session = s->index;
    to->prepared_ns = to->left_ns = s->began_ns;
    to->refused = to->by_watch = false;
    memset(to->made, 0, sizeof to->made);
    to->due_ns = j->due_ns;
}

/* Read a job's request; false: it is answered. */
static bool receive(struct tec_worker *w, int job)
{
    struct tec_job *j = &w->exchange->jobs[job];
    struct tec_error err = {.message = ""};
    j->lost = false;
    j->beyond = (struct tec_beyond){.n = 0};
    j->captured_ns = j->received_ns;
    j->picked_ns = w->jobs[job].started_ns = tec_clock_now(&w->clock);
    w->jobs[job].wants_streams = false;
    if (tec_worker_expired(w, job)) { /* answered already: its tick is over */
        tec_safety_skip(&w->exchange->safety);
        tec_exchange_return(w->exchange, job);
        return false;
    }
    if (atomic_load_explicit(&j->gone, memory_order_relaxed))
        tec_fail(&err, TEC_INVALID, "the client left");
    else if (tec_worker_read(w, job, &err) == TEC_OK)
        return true;
    tec_worker_fail(w, job, &err);
    return false;
}

/* Take what has come, until a session's second job; true if there was anything. */
static bool collect(struct tec_worker *w)
{
    bool any = false;
    int job = w->next;
    for (w->next = -1; job >= 0 || (job = tec_exchange_take(w->exchange)) >= 0; job = -1) {
        struct tec_error err = {.message = ""};
        any = true;
        if (!receive(w, job))
            continue;
        struct tec_worker_session *s = session_of(w, job);
        if (s->job >= 0) {
            w->next = job;
            break;
        }
        if (tec_worker_observe(w, s, job, &err) == TEC_OK)
            begin(w, s, job);
        else
            tec_worker_fail(w, job, &err);
        if (w->n_sessions == 1 && s->job >= 0)
            break;
    }
    return any;
}

/* Does the frame wait for jobs of other sessions? first_ns: of those that are there. A client that
 * has been silent for a second is not waited for. */
static bool gathers(const struct tec_worker *w, int64_t first_ns)
{
    enum { SILENT_NS = 1000000000 };
    bool others = false;
    for (int i = 0; i < w->n_sessions; i++) {
        const struct tec_worker_session *s = &w->sessions[i];
        others |= s->job < 0 && s->client >= 0 && first_ns - s->asked_ns < SILENT_NS;
    }
    return others && w->next < 0 && first_ns + w->gather_ns > tec_clock_now(&w->clock);
}

static bool take(void *user)
{
    struct tec_worker *w = user;
    int64_t first_ns = INT64_MAX;
    bool any = collect(w);
    for (int i = 0; i < w->n_sessions; i++)
        if (w->sessions[i].job >= 0 && w->sessions[i].began_ns < first_ns)
            first_ns = w->sessions[i].began_ns;
    if (first_ns == INT64_MAX) {
        tec_arena_finish(&w->moment);
        return any;
    }
    if (gathers(w, first_ns)) {
        tec_runtime_look(&w->runtime, first_ns + w->gather_ns);
        return false;
    }
    run_frame(w);
    tec_arena_finish(&w->moment);
    return true;
}

static void go_on(void *user)
{
    struct tec_worker *w = user;
    run_frame(w);
    tec_arena_finish(&w->moment);
}

/* A ring goes on with a request alone: a frame without one would hand out its actions to nobody. */
void tec_worker_run(struct tec_worker *w)
{
    const struct tec_runtime_source source = {
        .take = take, .go_on = w->stages ? NULL : go_on, .user = w};
    tec_runtime_work(&w->runtime, &source);
}
