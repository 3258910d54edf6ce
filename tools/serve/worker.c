/* worker.c - the engine thread of the server: it answers jobs in turn and runs frames of unfinished
 * language while there are none. */
#include "tools/serve/worker.h"

#include "tools/serve/reply.h"

#include <string.h>

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

/* Claim the answer of a job for the engine; false if its deadline has passed or another has
 * answered. The job is then given back to the connection. */
static bool ours(struct tec_worker *w, int job)
{
    struct tec_job *j = &w->exchange->jobs[job];
    int open = TEC_JOB_OPEN;
    bool late = j->due_ns && tec_clock_now(&w->clock) > j->due_ns && !tec_job_in_time(j);
    if (!late && atomic_compare_exchange_strong(&j->answer, &open, TEC_JOB_BY_ENGINE))
        return true;
    w->jobs[job].waits = false;
    w->jobs[job].by_watch = true;
    tec_exchange_return(w->exchange, job);
    return false;
}

static bool expired(const struct tec_worker *w, int job)
{
    return atomic_load(&w->exchange->jobs[job].answer) == TEC_JOB_BY_WATCH;
}

/* Put an error sentence for the client, in printable ASCII, because parts of it may have come from
 * the client. */
static void put_failure(struct tec_worker *w, int job, const struct tec_error *err)
{
    struct tec_job *j = &w->exchange->jobs[job];
    const char *text = err->message[0] ? err->message : tec_status_text(err->status);
    size_t n = strlen(text), head = sizeof "tectum: " - 1;
    n = n + head + 1 > j->room ? j->room - head - 1 : n;
    memcpy(j->reply, "tectum: ", head);
    for (size_t i = 0; i < n; i++)
        j->reply[head + i] = text[i] >= 32 && text[i] < 127 ? (uint8_t)text[i] : '?';
    j->reply[head + n] = '\n';
    j->reply_n = head + n + 1;
    j->failed = true;
    j->infer_ns = tec_clock_now(&w->clock) - w->jobs[job].started_ns;
    w->jobs[job].waits = false;
    tec_exchange_return(w->exchange, job);
}

static void answer_failure(struct tec_worker *w, int job, const struct tec_error *err)
{
    if (ours(w, job))
        put_failure(w, job, err);
}

/* The chunks that a reply has besides the first node's. */
static int list_others(const struct tec_worker *w, const struct tec_worker_job *s,
                       struct tec_reply_actions others[TEC_MAX_ACTIONS])
{
    int n = 0;
    for (int a = 1; s->wants_actions && a < w->n_actions; a++)
        if (s->made[a])
            others[n++] = (struct tec_reply_actions){w->outs[a], s->actions[a], w->others[a][0],
                                                     w->others[a][1]};
    return n;
}

static struct tec_reply_timing timing_of(const struct tec_worker_job *s, const struct tec_job *j,
                                         int64_t now)
{
    return (struct tec_reply_timing){.wait = (j->picked_ns - j->received_ns) / 1000,
                                     .decode = (s->decoded_ns - j->picked_ns) / 1000,
                                     .prepare = (s->prepared_ns - s->decoded_ns) / 1000,
                                     .model = (s->left_ns - s->prepared_ns) / 1000,
                                     .finish = (now - s->left_ns) / 1000};
}

/* Answer a job. `text` is NULL if none was asked for; `reason` says why the text ended, or why
 * there is none. */
static void answer(struct tec_worker *w, int job, const char *text, bool done, const char *reason)
{
    struct tec_job *j = &w->exchange->jobs[job];
    const struct tec_worker_job *s = &w->jobs[job];
    struct tec_reply_buffer out = {.data = j->reply, .room = j->room};
    if (!ours(w, job))
        return;
    struct tec_reply_actions others[TEC_MAX_ACTIONS];
    int64_t now = tec_clock_now(&w->clock);
    j->infer_ns = now - s->started_ns;
    const struct tec_reply_timing timing = timing_of(s, j, now);
    const struct tec_reply reply = {.actions = s->wants_actions ? s->actions[0] : NULL,
                                    .n_others = list_others(w, s, others),
                                    .others = others,
                                    .rows = w->rows,
                                    .columns = w->columns,
                                    .policy_ms = s->policy_ms,
                                    .server_ms = ms(j->infer_ns),
                                    .previous_ms = j->previous_ms,
                                    .aged = s->wants_actions && w->stages > 0,
                                    .age_ms = ms(now - j->captured_ns),
                                    .age_frames = s->age_frames,
                                    .extended = s->extended,
                                    .timing = s->wants_timing ? &timing : NULL,
                                    .has_text = text != NULL,
                                    .text = text,
                                    .text_bytes = text ? strlen(text) : 0,
                                    .text_done = done,
                                    .refused = s->refused,
                                    .request = s->request,
                                    .reason = reason,
                                    .chunk_id = s->chunk_id,
                                    .obs_ts = j->captured_ns,
                                    .age_us = s->wants_actions ? (now - j->captured_ns) / 1000 : -1,
                                    .limited = s->wants_actions ? j->beyond.n : 0,
                                    .missed = s->missed};
    tec_reply_pack(&out, &reply);
    if (out.full) {
        struct tec_error err;
        tec_fail(&err, TEC_NO_MEMORY, "reply: more than the %zu bytes that were made for it",
                 j->room);
        put_failure(w, job, &err);
        return;
    }
    j->reply_n = out.n;
    j->actions_at = s->wants_actions ? out.actions_at : 0;
    j->failed = false;
    w->jobs[job].waits = false;
    tec_exchange_return(w->exchange, job);
}

/* Answer without actions: the connection thread then decides by the connection's last command,
 * on_miss and the limits what leaves. */
static void answer_without(struct tec_worker *w, int job)
{
    if (!ours(w, job))
        return;
    w->exchange->jobs[job].infer_ns = tec_clock_now(&w->clock) - w->jobs[job].started_ns;
    w->jobs[job].waits = false;
    tec_exchange_return(w->exchange, job);
}

/* Send the actions that the job's frame has made, unless they wait for its text. */
static void send_actions(struct tec_worker *w)
{
    int job = w->running;
    struct tec_job *j = &w->exchange->jobs[job];
    struct tec_error err;
    bool good = w->good_rows >= w->rows, refused = tec_beyond_refused(&j->beyond);
    bool unasked = refused && !w->jobs[job].wants_actions;
    w->holds = false;
    atomic_store_explicit(&j->acted, good, memory_order_release);
    if ((good || unasked) && w->running_text)
        return;
    w->running = -1;
    if (good || unasked) {
        answer(w, job, NULL, false, "");
        return;
    }
    if (refused) {
        answer_without(w, job);
        return;
    }
    tec_fail(&err, TEC_INVALID, "actions: row %d of the model's %s", w->good_rows + 1, w->why);
    answer_failure(w, job, &err);
}

/* A chunk of an action node besides the first: where a row of it is none, or the robot may not
 * carry it out, the reply is without it. */
static void take_other(struct tec_worker *w, const struct tec_runtime_left *left)
{
    struct tec_worker_job *s = &w->jobs[w->running];
    struct tec_beyond beyond;
    const int *shape = w->others[left->action];
    int rows = tec_session_act_on(tec_engine_session(w->opened.engine, left->action),
                                  left->seen->state_raw, left->chunk, w->actions, &beyond);
    s->made[left->action] = rows >= shape[0] && !tec_beyond_refused(&beyond);
    memcpy(s->actions[left->action], w->actions,
           (size_t)shape[0] * (size_t)shape[1] * sizeof *w->actions);
}

static void take_first(struct tec_worker *w, const struct tec_runtime_left *left)
{
    struct tec_worker_job *s = &w->jobs[w->running];
    struct tec_job *j = &w->exchange->jobs[w->running];
    const struct tec_action_record *a = &left->record->actions[0];
    struct tec_session *session = w->opened.engine->session;
    w->good_rows =
        tec_session_act_on(session, left->seen->state_raw, left->chunk, w->actions, &j->beyond);
    if (w->good_rows < w->rows && !tec_beyond_refused(&j->beyond))
        tec_session_judge(session, left->chunk, w->good_rows, w->why, sizeof w->why);
    s->policy_ms = ms(a->release_ns - w->began_ns);
    s->left_ns = a->release_ns;
    s->missed = a->missed;
    s->chunk_id = left->seen->number;
    s->age_frames = (int)(left->record->frame - a->seen);
    memcpy(s->actions[0], w->actions, (size_t)w->rows * (size_t)w->columns * sizeof *w->actions);
    w->acted = w->holds = true;
    j->captured_ns = a->captured_ns;
    j->released_ns = a->release_ns;
    j->slow = s->missed;
    j->chunk_id = s->chunk_id;
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
    const int *shape = w->others[left->action];
    if (w->running < 0) {
        record_left(w, left, 0, 0);
        return;
    }
    if (left->action)
        take_other(w, left);
    else
        take_first(w, left);
    record_left(w, left, left->action ? shape[0] : w->rows, left->action ? shape[1] : w->columns);
    if (left->record->to_come == 0 && w->holds)
        send_actions(w);
}

/* The model ended the actions of the request's own observation early. */
void tec_worker_lost(void *user, const struct tec_observation_record *seen)
{
    struct tec_worker *w = user;
    w->lost |= w->running >= 0 && seen->number == w->number;
}

/* Wait for the text of the request that this frame asked for, or report its refusal. */
static void await_text(struct tec_worker *w, int job)
{
    w->jobs[job].request = w->ask.id;
    w->jobs[job].refused = w->ask.refused;
    if (w->ask.refused)
        answer(w, job, "", false, w->ask.reason);
    else
        w->jobs[job].waits = true;
}

/* Append text to a waiting job; text that does not fit is left out whole. */
static void finish_text(struct tec_worker *w, int job, const struct tec_utterance *u)
{
    struct tec_error err;
    char *text = NULL;
    int n = atomic_load_explicit(&u->count, memory_order_acquire);
    bool done = atomic_load_explicit(&u->done, memory_order_acquire) == 1;
    if (tec_engine_text(w->opened.engine, u, n, &w->moment, &text, &err) != TEC_OK) {
        answer_failure(w, job, &err);
        return;
    }
    bool fits = text && strlen(text) <= (size_t)w->text_bytes;
    answer(w, job, fits ? text : "", done && (fits || !text), u->reason);
}

static void tell_texts(struct tec_worker *w)
{
    const struct tec_loop *loop = w->opened.engine->loop;
    for (int job = 0; job < w->exchange->n; job++) {
        const struct tec_utterance *u = NULL;
        if (!w->jobs[job].waits)
            continue;
        bool gone = atomic_load_explicit(&w->exchange->jobs[job].gone, memory_order_relaxed);
        for (int i = 0; i < tec_loop_utterances(loop) && !u; i++) {
            const struct tec_utterance *one = tec_loop_utterance(loop, i);
            u = one && one->id == w->jobs[job].request ? one : NULL;
        }
        gone |= expired(w, job);
        if (gone && u && !atomic_load_explicit(&u->done, memory_order_acquire))
            w->cancels[w->n_cancels++] = u->id; /* nobody wants this text any more */
        if (!u || gone)
            answer(w, job, "", false, "");
        else if (atomic_load_explicit(&u->done, memory_order_acquire) != 0)
            finish_text(w, job, u);
    }
}

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

/* Make the tick that the loop gets: a job's request replaces the one that its node would start. */
static struct tec_tick make_tick(struct tec_worker *w)
{
    struct tec_tick tick = tec_loop_tick(w->opened.engine->loop, tec_clock_now(&w->clock), 0);
    tick.cancels = w->cancels;
    tick.n_cancels = w->n_cancels;
    if (!w->running_text)
        return tick;
    tick.mute = 1U << w->ask.decoder;
    tick.spawn &= ~tick.mute;
    tick.asks = &w->ask;
    tick.n_asks = 1;
    return tick;
}

/* The device has failed: no waiting job gets actions any more, but each is told why. */
static void lose(struct tec_worker *w, const struct tec_error *err)
{
    if (w->running >= 0)
        answer_failure(w, w->running, err);
    w->running = -1;
    for (int job = 0; job < w->exchange->n; job++)
        if (w->jobs[job].waits)
            answer_failure(w, job, err);
}

static void record_tick(struct tec_worker *w, const struct tec_tick *tick, bool observed)
{
    const struct tec_flow *flow = &w->opened.engine->model->flow;
    const struct tec_recorded_tick one = {.number = w->number,
                                          .observed = observed,
                                          .reset = w->reset,
                                          .noise = observed ? w->given_noise : NULL,
                                          .noise_n = flow->horizon * flow->dim,
                                          .tick = tick};
    if (w->recording)
        tec_recording_tick(w->recording, &one);
    w->reset = TEC_RESET_NONE;
}

/* Run the loop's frame of a tick. */
static const struct tec_frame_record *run_tick(struct tec_worker *w, int job)
{
    struct tec_tick tick = make_tick(w);
    struct tec_runtime_seen seen = {.acts_for = w->number};
    if (job >= 0) {
        count_from_request(w, job, &tick);
        seen = (struct tec_runtime_seen){
            &w->input, w->number, tec_session_observation(w->opened.engine->session)->state_raw,
            w->number};
    }
    record_tick(w, &tick, job >= 0);
    const struct tec_frame_record *r = tec_runtime_frame(&w->runtime, &seen, &tick, 1);
    tec_recording_frame(w->recording, r);
    w->n_cancels = 0;
    if (w->running >= 0 && w->holds)
        send_actions(w);
    return r;
}

/* A ring that gives no actions is given the same observation again, until it gives some or until
 * the actions of that observation are lost, for they would be lost again. Once the ring gives
 * actions in every frame, actions that end early are the request's own. */
static const struct tec_frame_record *fill_ring(struct tec_worker *w, int job,
                                                const struct tec_frame_record *r)
{
    for (int i = 0; i < w->stages && !w->acted && !w->lost && !expired(w, job); i++) {
        r = run_tick(w, job);
        if (r->failed)
            break;
        w->lost |= r->cause == TEC_CAUSE_MODEL;
    }
    return r;
}

/* Count a miss if the robot was not given the request's own actions by the deadline. */
static void note_miss(struct tec_worker *w, int job, const struct tec_frame_record *r)
{
    const struct tec_worker_job *s = &w->jobs[job];
    int64_t due_ns = s->due_ns ? s->due_ns : r->actions[0].deadline_ns;
    int64_t until_ns = w->acted ? r->actions[0].release_ns : tec_clock_now(&w->clock);
    bool missed = s->by_watch || (w->acted ? s->missed : due_ns > 0);
    if (s->wants_actions && (missed || r->cause == TEC_CAUSE_MODEL))
        tec_safety_miss(&w->exchange->safety, r->frame, r->cause, until_ns - due_ns);
}

static const struct tec_frame_record *run_job(struct tec_worker *w, int job)
{
    struct tec_worker_job *s = &w->jobs[job];
    const struct tec_job *j = &w->exchange->jobs[job];
    if (w->stages && (w->client != j->client || w->request.reset))
        tec_loop_reset(w->opened.engine->loop);
    if (w->client != j->client || w->request.reset)
        w->reset = w->stages ? TEC_RESET_ALL : TEC_RESET_SESSION;
    w->client = j->client;
    w->number = s->chunk_id = w->observations++;
    w->began_ns = tec_clock_now(&w->clock);
    s->extended = w->request.extended;
    s->wants_timing = w->request.wants_timing;
    s->prepared_ns = s->left_ns = w->began_ns;
    s->wants_actions = w->request.wants_actions;
    s->refused = s->by_watch = false;
    memset(s->made, 0, sizeof s->made);
    s->due_ns = j->due_ns;
    const struct tec_frame_record *r = run_tick(w, job);
    w->lost |= r->cause == TEC_CAUSE_MODEL;
    return fill_ring(w, job, r);
}

/* Run one frame, for a job or without an observation. */
static void run_frame(struct tec_worker *w, int job)
{
    bool asked = job >= 0;
    struct tec_error err;
    w->running = job;
    w->running_text = asked && w->request.wants_text;
    w->acted = w->holds = w->lost = false;
    if (asked)
        note_miss(w, job, run_job(w, job));
    else
        run_tick(w, -1);
    if (tec_engine_failure(w->opened.engine, &err) != TEC_OK) {
        lose(w, &err);
        return;
    }
    if (asked && !w->acted && w->lost) {
        w->exchange->jobs[job].lost = true;
        answer_without(w, job);
    } else if (asked && !w->acted && (w->jobs[job].wants_actions || !w->running_text)) {
        tec_fail(&err, TEC_UNSUPPORTED, "pipeline %s made no actions in this frame",
                 w->opened.pipeline->name);
        answer_failure(w, job, &err);
    } else if (asked && w->running >= 0) {
        await_text(w, job);
    }
    w->running = -1;
    tell_texts(w);
}

static void serve(struct tec_worker *w, int job)
{
    struct tec_job *j = &w->exchange->jobs[job];
    struct tec_error err = {.message = ""};
    j->lost = false;
    j->beyond = (struct tec_beyond){.n = 0};
    j->captured_ns = j->received_ns;
    j->picked_ns = w->jobs[job].started_ns = tec_clock_now(&w->clock);
    if (expired(w, job)) { /* answered already: its tick is over */
        tec_safety_skip(&w->exchange->safety);
        tec_exchange_return(w->exchange, job);
        return;
    }
    if (atomic_load_explicit(&j->gone, memory_order_relaxed)) {
        tec_fail(&err, TEC_INVALID, "the client left");
        answer_failure(w, job, &err);
        return;
    }
    if (tec_worker_observe(w, job, &err) == TEC_OK)
        run_frame(w, job);
    else
        answer_failure(w, job, &err);
}

static bool take(void *user)
{
    struct tec_worker *w = user;
    int job = tec_exchange_take(w->exchange);
    if (job < 0)
        return false;
    serve(w, job);
    tec_arena_finish(&w->moment);
    return true;
}

static void go_on(void *user)
{
    struct tec_worker *w = user;
    run_frame(w, -1);
    tec_arena_finish(&w->moment);
}

/* A ring goes on with a request alone: a frame without one would hand out its actions to nobody. */
void tec_worker_run(struct tec_worker *w)
{
    const struct tec_runtime_source source = {
        .take = take, .go_on = w->stages ? NULL : go_on, .user = w};
    tec_runtime_work(&w->runtime, &source);
}
