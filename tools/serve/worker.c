/* worker.c - a frame of the server's engine thread: the ticks of the sessions that are in it, what
 * leaves in it, and what becomes of their jobs behind it. */
#include "tools/serve/worker.h"

#include "tools/serve/worker_own.h"

#include <string.h>

/* --- what leaves in a frame ------------------------------------------------------------------- */

/* A chunk of an action node besides the first: where a row of it is none, or the robot may not
 * carry it out, the reply is without it. */
static int take_other(struct tec_worker *w, const struct tec_worker_session *s,
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
    return rows;
}

static int take_first(struct tec_worker *w, struct tec_worker_session *s,
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
    j->over = a->over;
    j->slow = job->missed;
    j->chunk_id = job->chunk_id;
    return s->good_rows;
}

/* The frame leaves an action node out; of another than the first the reply is without it. */
static void leave_out(struct tec_worker *w, struct tec_worker_session *s,
                      const struct tec_runtime_left *left)
{
    struct tec_worker_job *job = s->job < 0 ? NULL : &w->jobs[s->job];
    if (!job || left->action)
        return;
    struct tec_job *j = &w->exchange->jobs[s->job];
    int64_t now = tec_clock_now(&w->clock);
    s->good_rows = w->rows;
    s->acted = s->holds = true;
    job->policy_ms = (double)(now - s->began_ns) / 1e6;
    job->left_ns = j->released_ns = now;
    job->missed = j->slow = false;
    job->age_frames = 0;
    j->captured_ns = left->seen->captured_ns;
    j->left_out = true;
}

/* With the robot's actions [rows, columns], which w->actions has: those that are finite, and none
 * where it may not carry them out. columns 0: nobody asked for them. */
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
                                           .actions = columns ? w->actions : NULL,
                                           .rows = rows,
                                           .columns = columns};
    tec_recording_left(w->recording, &one);
    tec_view_left(w->view, &one);
}

void tec_worker_left(void *user, const struct tec_runtime_left *left)
{
    struct tec_worker *w = user;
    struct tec_worker_session *s = &w->sessions[left->session];
    const int *shape = w->others[left->action];
    if (!left->chunk) {
        leave_out(w, s, left);
    } else if (s->job < 0) {
        record_left(w, left, 0, 0);
    } else {
        int rows = left->action ? take_other(w, s, left) : take_first(w, s, left);
        record_left(w, left, rows, left->action ? shape[1] : w->columns);
    }
    if (left->record->to_come == 0 && s->holds)
        tec_worker_send(w, s);
}

/* The model ended the actions of the request's own observation early. */
void tec_worker_lost(void *user, int session, const struct tec_observation_record *seen)
{
    struct tec_worker *w = user;
    struct tec_worker_session *s = &w->sessions[session];
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

/* Make the tick that the loop gets: a job's request replaces the one that its node would start.
 * Texts come every so many observations of their robot's episode: frames in which language alone
 * goes on do not count, and of several that fill a ring with one the first does. */
static struct tec_tick make_tick(struct tec_worker *w, struct tec_worker_session *s)
{
    const struct tec_loop *loop = w->opened.engine->loop;
    struct tec_tick tick = tec_loop_tick(loop, tec_clock_now(&w->clock), 0);
    if (w->n_sessions > 1) {
        tick.session = s->index;
        tick.frame = s->frame++;
    }
    bool first = s->job >= 0 && !s->asked;
    tick.ahead = tick.frame - s->observed - s->passed;
    s->observed += first;
    tec_loop_count(loop, &s->counted, first ? &s->input : NULL, &tick);
    s->asked |= s->job >= 0;
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
    tick.n_asks = first; /* a ring may be filled with it in several frames */
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

/* Once. */
static void tell_unread(struct tec_worker *w)
{
    const char *unread = tec_runtime_unread(&w->runtime);
    if (unread && !w->unread)
        tec_say(w->opened.call, "%s", unread);
    w->unread = unread != NULL;
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
    tell_unread(w);
    for (int i = 0; i < n; i++) {
        in[i]->record = tec_loop_record(w->opened.engine->loop, i);
        tec_recording_frame(w->recording, in[i]->record);
        tec_view_frame(w->view, in[i]->record);
        in[i]->n_cancels = 0;
        if (in[i]->job >= 0 && in[i]->holds)
            tec_worker_send(w, in[i]);
    }
}

/* A ring that gives no actions is given the same observation again, until it gives some or until
 * the actions of that observation are lost, for they would be lost again. Once the ring gives
 * actions in every frame, actions that end early are the request's own. */
static bool fills(const struct tec_worker *w, const struct tec_worker_session *s)
{
    return s->fills > 0 && !s->acted && !s->lost && !s->record->failed &&
           !tec_worker_expired(w, s->taken);
}

/* Count a miss if the robot was not given the request's own actions by the deadline. */
static void note_miss(struct tec_worker *w, const struct tec_worker_session *s)
{
    const struct tec_worker_job *job = &w->jobs[s->taken];
    const struct tec_frame_record *r = s->record;
    int64_t due_ns = job->due_ns ? job->due_ns : r->actions[0].deadline_ns;
    int64_t release_ns = r->actions[0].release_ns;
    int64_t until_ns = release_ns >= 0 ? release_ns : tec_clock_now(&w->clock);
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

/* What becomes of the jobs that a frame was for, before another one uses its records. Those of
 * rings that fill stay for the next one, which other robots' jobs may be in, too. */
static void end_jobs(struct tec_worker *w)
{
    struct tec_error err;
    bool failed = tec_engine_failure(w->opened.engine, &err) != TEC_OK;
    for (int i = 0; i < w->n_sessions; i++) {
        struct tec_worker_session *s = &w->sessions[i];
        if (s->taken < 0)
            continue;
        s->lost |= w->stages > 0 && s->record->cause == TEC_CAUSE_MODEL;
        if (!failed && fills(w, s)) {
            s->fills--;
            continue;
        }
        note_miss(w, s);
        if (failed)
            continue;
        settle(w, s);
        s->asked_ns = tec_clock_now(&w->clock);
        s->taken = s->job = -1;
        s->text = false;
    }
    if (failed)
        tec_worker_lose(w, &err);
}

void tec_worker_frame(struct tec_worker *w)
{
    bool asked = false;
    for (int i = 0; i < w->n_sessions; i++)
        asked |= w->sessions[i].taken >= 0;
    int64_t before = tec_clock_now(&w->clock);
    run_ticks(w, asked);
    if (asked)
        w->frame_ns = tec_clock_now(&w->clock) - before;
    end_jobs(w);
    if (tec_engine_failure(w->opened.engine, NULL) == TEC_OK)
        tec_worker_tell_texts(w);
}
