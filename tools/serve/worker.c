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

/* The tick of a request is when it was complete: waiting and decoding count towards its deadlines.
 * Preparing it makes inputs late; what of that the thread did not run is the host's. */
static void count_from_request(const struct tec_worker *w, int job, struct tec_tick *tick)
{
    const struct tec_job *j = &w->exchange->jobs[job];
    const struct tec_loop_options *loop = tec_loop_settings(w->opened.engine->loop);
    int64_t deadline_ns = loop->n_actions ? loop->actions[0].deadline_ns : 0;
    int64_t took_ns = w->jobs[job].prepared_ns - j->picked_ns,
            ran_ns = w->jobs[job].prepared_cpu_ns;
    tick->late_ns = ran_ns < took_ns ? ran_ns : took_ns;
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
    tick.rests = s->job < 0;
    if (s->job >= 0)
        count_from_request(w, s->job, &tick);
    if (!s->text)
        return tick;
    tick.mute = 1U << s->ask.decoder;
    tick.spawn &= ~tick.mute;
    tick.asks = &s->ask;
    tick.n_asks = !s->asked; /* a ring may be filled with it in several frames */
    s->asked = true;
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
    struct tec_runtime_seen seen[TEC_MAX_SESSIONS] = {0};
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
    int64_t before = tec_clock_now(&w->clock);
    run_ticks(w, asked);
    if (asked)
        w->frame_ns = tec_clock_now(&w->clock) - before;
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
        if (w->sessions[i].taken >= 0) {
            settle(w, &w->sessions[i]);
            w->sessions[i].asked_ns = tec_clock_now(&w->clock);
        }
        w->sessions[i].taken = w->sessions[i].job = -1;
        w->sessions[i].text = false;
    }
    tec_worker_tell_texts(w);
}

/* --- jobs for sessions ------------------------------------------------------------------------ */

/* Does a job of the session wait for its text? */
static bool waits_for_text(const struct tec_worker *w, const struct tec_worker_session *s)
{
    for (int job = 0; job < w->exchange->n; job++)
        if (w->jobs[job].waits && w->jobs[job].session == s->index)
            return true;
    return false;
}

static bool connected(const struct tec_worker *w, int64_t client)
{
    for (int job = 0; job < w->exchange->n; job++)
        if (atomic_load_explicit(&w->exchange->jobs[job].connected, memory_order_relaxed) == client)
            return true;
    return false;
}

/* Which session another client is given first: the lowest. */
static int rank_of(const struct tec_worker *w, const struct tec_worker_session *s)
{
    enum { NOBODYS, LEFT, LEFT_NAMED, IDLE, WAITS };
    if (waits_for_text(w, s))
        return WAITS;
    if (s->client < 0)
        return NOBODYS;
    return connected(w, s->client) ? IDLE : s->name[0] ? LEFT_NAMED : LEFT;
}

/* The session of the client whose request was read: the one that it has, else one that is nobody's,
 * else one whose client has left, else the one that was not asked for longest. */
static struct tec_worker_session *session_of(struct tec_worker *w, int job)
{
    struct tec_worker_session *best = w->sessions;
    int lowest = rank_of(w, best);
    for (int i = 0; i < w->n_sessions; i++) {
        struct tec_worker_session *s = &w->sessions[i];
        int rank = rank_of(w, s);
        if (tec_worker_belongs(w, s, job))
            return s;
        if (rank < lowest || (rank == lowest && s->asked_ns < best->asked_ns)) {
            best = s;
            lowest = rank;
        }
    }
    return best;
}

/* A ring begins empty. Who waits for a text that ends by it is answered, before the numbers of
 * requests are used anew. */
static void empty_ring(struct tec_worker *w, struct tec_worker_session *s)
{
    tec_loop_reset(w->opened.engine->loop);
    tec_worker_texts_skip(w, s);
    s->texts.anew = true; /* frames are numbered from 0 */
    tec_worker_tell_texts(w);
}

/* The session is that client's from now on, and no other one is. */
static void give_to(struct tec_worker *w, struct tec_worker_session *s, int64_t client)
{
    const char *name = w->request.session;
    for (int i = 0; i < w->n_sessions; i++)
        if (w->sessions[i].client == client && &w->sessions[i] != s)
            w->sessions[i].client = 0; /* no connection's: its name may come back for it */
    if (!s->own)
        tec_worker_texts_forget(s);
    if (!s->own || (name && name[0]))
        snprintf(s->name, sizeof s->name, "%s", name ? name : "");
    s->texts.pushes &= s->client == client; /* it is for the connection that asked for it */
    s->client = client;
}

/* The observation is prepared: the job is in the session's next frame. */
static void begin(struct tec_worker *w, struct tec_worker_session *s, int job)
{
    struct tec_worker_job *to = &w->jobs[job];
    const struct tec_job *j = &w->exchange->jobs[job];
    give_to(w, s, j->client);
    tec_worker_texts_left(s, j->replaced);
    if (w->stages && s->fresh)
        empty_ring(w, s);
    if (to->wants_streams)
        tec_worker_texts_want(w, s, to->streams, to->pushes);
    if (s->fresh)
        s->reset = w->stages ? TEC_RESET_ALL : TEC_RESET_SESSION;
    s->asked = false;
    s->number = to->chunk_id = s->observations++;
    s->asked_ns = s->began_ns = tec_clock_now(&w->clock);
    s->taken = s->job = job;
    s->text = to->wants_text;
    s->acted = s->holds = s->lost = false;
    to->session = s->index;
    to->prepared_ns = to->left_ns = s->began_ns;
    to->prepared_cpu_ns = tec_clock_thread() - to->picked_cpu_ns;
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
    w->jobs[job].picked_cpu_ns = tec_clock_thread();
    w->jobs[job].wants_streams = false;
    if (tec_worker_expired(w, job)) { /* answered already: its tick is over */
        tec_safety_skip(&w->exchange->safety, j->received_ns, j->due_ns);
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

/* Until when a job of that session is expected: until its client has been silent for a second; 0:
 * it has left, or waits for its text. */
static int64_t expected_until(const struct tec_worker *w, const struct tec_worker_session *s)
{
    enum { SILENT_NS = 1000000000 };
    bool may = s->job < 0 && s->client > 0 && connected(w, s->client) && !waits_for_text(w, s);
    return may ? s->asked_ns + SILENT_NS : 0;
}

/* Until when the frame waits for jobs of other sessions: so long after the first one, and not so
 * long that one of its own would be late; 0: it does not. */
static int64_t gathers_until(const struct tec_worker *w)
{
    int64_t until = INT64_MAX, expected = 0;
    for (int i = 0; i < w->n_sessions; i++) {
        const struct tec_worker_session *s = &w->sessions[i];
        int64_t due = s->job >= 0 ? w->jobs[s->job].due_ns : 0;
        int64_t its = expected_until(w, s);
        expected = its > expected ? its : expected;
        if (s->job >= 0 && s->began_ns + w->gather_ns < until)
            until = s->began_ns + w->gather_ns;
        if (due && due - w->frame_ns < until)
            until = due - w->frame_ns;
    }
    return w->next >= 0 ? 0 : until < expected ? until : expected;
}

static bool take(void *user)
{
    struct tec_worker *w = user;
    tec_safety_settle(&w->exchange->safety, w->opened.engine->loop, tec_clock_now(&w->clock));
    bool any = collect(w), asked = false;
    for (int i = 0; i < w->n_sessions; i++)
        asked |= w->sessions[i].job >= 0;
    if (!asked) {
        tec_arena_finish(&w->moment);
        return any;
    }
    int64_t until = gathers_until(w);
    if (until > tec_clock_now(&w->clock)) {
        tec_runtime_look(&w->runtime, until);
        return false;
    }
    run_frame(w);
    tec_arena_finish(&w->moment);
    return true;
}

/* Language goes on. A ring does not: it would hand out its actions to nobody. */
static void go_on(void *user)
{
    struct tec_worker *w = user;
    run_frame(w);
    tec_arena_finish(&w->moment);
}

void tec_worker_run(struct tec_worker *w)
{
    const struct tec_runtime_source source = {
        .take = take, .go_on = go_on, .rests = true, .user = w};
    tec_runtime_work(&w->runtime, &source);
    tec_safety_settle(&w->exchange->safety, w->opened.engine->loop, tec_clock_now(&w->clock));
}
