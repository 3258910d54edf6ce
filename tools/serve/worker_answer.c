/* worker_answer.c - how a job of the server leaves: with actions, with the text that it waits for,
 * or with a sentence that says why not. */
#include "tools/serve/worker_own.h"

#include "tools/serve/reply.h"

#include <stdio.h>
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

bool tec_worker_expired(const struct tec_worker *w, int job)
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

void tec_worker_fail(struct tec_worker *w, int job, const struct tec_error *err)
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

/* `of`: whose texts the reply has; NULL: it has none. */
static void answer_with(struct tec_worker *w, int job, const struct tec_reply *reply,
                        struct tec_worker_session *of)
{
    struct tec_job *j = &w->exchange->jobs[job];
    struct tec_reply_buffer out = {.data = j->reply, .room = j->room};
    tec_reply_pack(&out, reply);
    if (out.full) {
        struct tec_error err;
        tec_fail(&err, TEC_NO_MEMORY, "reply: more than the %zu bytes that were made for it",
                 j->room);
        put_failure(w, job, &err);
        return;
    }
    if (of)
        tec_worker_texts_pack(of);
    j->reply_n = out.n;
    j->actions_at = reply->actions ? out.actions_at : 0;
    j->failed = false;
    w->jobs[job].waits = false;
    tec_exchange_return(w->exchange, job);
}

/* The connection thread replies, with all but the actions of the first node. Texts that have ended
 * come with the next reply. */
static void answer_beside(struct tec_worker *w, int job, const struct tec_reply *reply)
{
    struct tec_job *j = &w->exchange->jobs[job];
    j->beside = *reply;
    if (reply->text) {
        memcpy(j->text, reply->text, reply->text_bytes);
        j->beside.text = j->text;
    }
    snprintf(j->reason, sizeof j->reason, "%s", reply->reason);
    j->beside.reason = j->reason;
    j->failed = false;
    w->jobs[job].waits = false;
    tec_exchange_return(w->exchange, job);
}

static struct tec_reply_timing timing_of(const struct tec_worker_job *s, const struct tec_job *j,
                                         int64_t now)
{
    return (struct tec_reply_timing){.wait = (j->picked_ns - j->received_ns) / 1000,
                                     .decode = (s->decoded_ns - j->picked_ns) / 1000,
                                     .prepare = (s->prepared_ns - s->decoded_ns) / 1000,
                                     .model = (s->left_ns - s->prepared_ns) / 1000,
                                     .finish = (now - s->left_ns) / 1000,
                                     .received = j->received_ns,
                                     .left = now};
}

/* Answer a job. `text` is NULL if none was asked for; `reason` says why the text ended, or why
 * there is none. */
static void answer(struct tec_worker *w, int job, const char *text, bool done, const char *reason)
{
    struct tec_job *j = &w->exchange->jobs[job];
    const struct tec_worker_job *s = &w->jobs[job];
    if (!ours(w, job))
        return;
    struct tec_worker_session *of = &w->sessions[s->session];
    bool own = of->client == j->client; /* it may be another's since its text is waited for */
    int64_t now = tec_clock_now(&w->clock);
    j->infer_ns = now - s->started_ns;
    j->timing = timing_of(s, j, now);
    const struct tec_reply reply = {.actions = s->wants_actions ? s->actions[0] : NULL,
                                    .n_others = list_others(w, s, j->others),
                                    .others = j->others,
                                    .rows = w->rows,
                                    .columns = w->columns,
                                    .policy_ms = s->policy_ms,
                                    .server_ms = ms(j->infer_ns),
                                    .previous_ms = j->previous_ms,
                                    .aged = s->wants_actions && w->stages > 0,
                                    .age_ms = ms(now - j->captured_ns),
                                    .age_frames = s->age_frames,
                                    .extended = s->extended,
                                    .timing = s->wants_timing ? &j->timing : NULL,
                                    .has_texts = s->wants_streams && !s->pushes,
                                    .n_texts = own ? of->texts.n : 0,
                                    .texts_lost = own ? of->texts.lost : 0,
                                    .texts = of->texts.kept,
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
    if (j->left_out && s->wants_actions)
        answer_beside(w, job, &reply);
    else
        answer_with(w, job, &reply, s->wants_streams && own ? of : NULL);
}

void tec_worker_answer_without(struct tec_worker *w, int job)
{
    if (!ours(w, job))
        return;
    w->exchange->jobs[job].infer_ns = tec_clock_now(&w->clock) - w->jobs[job].started_ns;
    w->jobs[job].waits = false;
    tec_exchange_return(w->exchange, job);
}

void tec_worker_send(struct tec_worker *w, struct tec_worker_session *s)
{
    int job = s->job;
    struct tec_job *j = &w->exchange->jobs[job];
    struct tec_error err;
    bool good = s->good_rows >= w->rows, refused = tec_beyond_refused(&j->beyond);
    bool unasked = refused && !w->jobs[job].wants_actions;
    s->holds = false;
    atomic_store_explicit(&j->acted, good, memory_order_release);
    if ((good || unasked) && s->text)
        return;
    s->job = -1;
    if (good || unasked) {
        answer(w, job, NULL, false, "");
        return;
    }
    if (refused) {
        tec_worker_answer_without(w, job);
        return;
    }
    tec_fail(&err, TEC_INVALID, "actions: row %d of the model's %s", s->good_rows + 1, s->why);
    tec_worker_fail(w, job, &err);
}

void tec_worker_await_text(struct tec_worker *w, const struct tec_worker_session *s, int job)
{
    w->jobs[job].request = s->ask.id;
    w->jobs[job].refused = s->ask.refused;
    if (s->ask.refused)
        answer(w, job, "", false, s->ask.reason);
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
        tec_worker_fail(w, job, &err);
        return;
    }
    bool fits = text && strlen(text) <= (size_t)w->text_bytes;
    answer(w, job, fits ? text : "", done && (fits || !text), u->reason);
}

void tec_worker_tell_texts(struct tec_worker *w)
{
    for (int i = 0; i < w->n_sessions; i++)
        tec_worker_texts_keep(w, &w->sessions[i]);
    const struct tec_loop *loop = w->opened.engine->loop;
    for (int job = 0; job < w->exchange->n; job++) {
        const struct tec_utterance *u = NULL;
        if (!w->jobs[job].waits)
            continue;
        bool gone = atomic_load_explicit(&w->exchange->jobs[job].gone, memory_order_relaxed);
        for (int i = 0; i < tec_loop_utterances(loop) && !u; i++)
            if (tec_loop_utterance(loop, i)->id == w->jobs[job].request)
                u = tec_loop_utterance(loop, i);
        gone |= tec_worker_expired(w, job);
        struct tec_worker_session *s = &w->sessions[w->jobs[job].session];
        if (gone && u && !atomic_load_explicit(&u->done, memory_order_acquire))
            s->cancels[s->n_cancels++] = u->id; /* nobody wants this text any more */
        if (!u || gone)
            answer(w, job, "", false, "");
        else if (atomic_load_explicit(&u->done, memory_order_acquire) != 0)
            finish_text(w, job, u);
    }
}

void tec_worker_lose(struct tec_worker *w, const struct tec_error *err)
{
    for (int i = 0; i < w->n_sessions; i++) {
        if (w->sessions[i].job >= 0)
            tec_worker_fail(w, w->sessions[i].job, err);
        w->sessions[i].taken = w->sessions[i].job = -1;
    }
    for (int job = 0; job < w->exchange->n; job++)
        if (w->jobs[job].waits)
            tec_worker_fail(w, job, err);
}
