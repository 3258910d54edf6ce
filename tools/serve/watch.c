/* watch.c - replies in place of the engine's, by the deadlines of one connection. */
#include "tools/serve/watch.h"

#include "tools/serve/reply.h"

#include <stdio.h>
#include <string.h>

static struct tec_job *job_of(const struct tec_watch *w)
{
    return &w->slot->exchange->jobs[w->slot->job];
}

enum tec_status tec_watch_create(struct tec_watch *w, const struct tec_watch_options *options,
                                 struct tec_slot *slot, struct tec_arena *arena,
                                 struct tec_arena *moment, struct tec_error *err)
{
    *w = (struct tec_watch){.o = *options, .slot = slot, .moment = moment};
    return w->o.acts ? tec_action_output_create(&w->output, &w->o.output, arena, err) : TEC_OK;
}

void tec_watch_open(struct tec_watch *w)
{
    if (w->output)
        tec_action_output_forget(w->output);
    w->name[0] = '\0';
}

/* The connection says who it is. Where a robot of that name has left, this is the robot: what it
 * was given last is what its next command is measured from, and its requests are counted on. */
static void come_back(struct tec_watch *w, const char *name)
{
    struct tec_watch *had = w->next;
    while (had != w && (had->slot->connection || strcmp(had->name, name) != 0))
        had = had->next;
    snprintf(w->name, sizeof w->name, "%s", name);
    if (had == w)
        return;
    struct tec_action_output *fresh = w->output;
    w->output = had->output;
    w->resets = had->resets;
    w->slot->n_requests += had->slot->n_requests;
    had->output = fresh;
    had->name[0] = '\0';
}

static struct tec_action_output_chunk chunk_of(const struct tec_watch *w, int64_t tick)
{
    const struct tec_job *j = job_of(w);
    return (struct tec_action_output_chunk){.frame = tick,
                                            .captured_ns = j->captured_ns,
                                            .actions = j->actions,
                                            .seen = j->chunk_id,
                                            .over = j->over,
                                            .beyond = j->beyond,
                                            .left_out = j->left_out};
}

static struct tec_safety *safety_of(const struct tec_watch *w)
{
    return &w->slot->exchange->safety;
}

/* Another connection may have ended a stop: this connection's then ends, too. */
static void follow_resets(struct tec_watch *w)
{
    uint32_t resets = atomic_load(&safety_of(w)->resets);
    if (w->output && w->resets != resets)
        tec_action_output_reset(w->output);
    w->resets = resets;
}

/* Stop the server's robots: this request's actions were one too many that did not leave. */
static void stop(struct tec_watch *w, const struct tec_handed *handed)
{
    struct tec_safety_stop why =
        tec_safety_stop_of(&handed->beyond, handed->left_out, &w->o.output);
    why.node = w->o.node;
    why.number = w->slot->tick + 1;
    why.client = w->slot->client;
    why.session = w->name;
    why.left = !w->slot->connection;
    tec_safety_stop(safety_of(w), &why);
}

/* A stop holds for the whole server, whichever connection caused it. */
static struct tec_handed latch(struct tec_watch *w, struct tec_handed handed)
{
    if (handed.source == TEC_SOURCE_STOPPED)
        stop(w, &handed);
    else if (atomic_load(&safety_of(w)->stopped))
        handed = (struct tec_handed){
            .source = TEC_SOURCE_STOPPED, .frame = -1, .seen = -1, .left_out = handed.left_out};
    return handed;
}

/* Decide which actions leave: the request's own if they are `fresh`, else substitutes. */
static struct tec_handed hand_out(struct tec_watch *w, int64_t tick, bool fresh)
{
    follow_resets(w);
    w->was_stopped = atomic_load(&safety_of(w)->stopped);
    if (!w->output) /* a pipeline of text */
        return (struct tec_handed){.source = TEC_SOURCE_NONE, .frame = -1, .seen = -1};
    if (!fresh) /* the engine may still own the job, so it is not read */
        return latch(w, tec_action_output_missed(w->output, tick));
    const struct tec_action_output_chunk chunk = chunk_of(w, tick);
    const struct tec_handed handed = tec_action_output_fresh(w->output, &chunk);
    if (handed.beyond.n)
        tec_safety_limit(safety_of(w), &handed.beyond);
    if (handed.left_out)
        atomic_fetch_add(&safety_of(w)->left_out, 1);
    return latch(w, handed);
}

/* Begin the request that the engine has from now on. */
static void begin(struct tec_watch *w)
{
    w->wants_actions = w->options.wants_actions;
    w->wants_text = w->options.wants_text;
    w->wants_streams = w->options.wants_streams && !w->options.push;
    w->told = w->replied = false;
}

void tec_watch_whole(struct tec_watch *w, int64_t now)
{
    const struct tec_slot_message *m = &w->slot->filling;
    struct tec_error err;
    int64_t due = 0;
    /* The engine reports a malformed message; here it only has no options. */
    bool good = tec_serve_request_options(&w->options, m->data, m->n, w->moment, &err) == TEC_OK;
    bool own = good && w->options.deadline_ms > 0.0;
    if (own)
        due = now + (int64_t)(w->options.deadline_ms * 1e6);
    else if (good && w->o.deadline_ns > 0 && (w->options.wants_actions || !w->output))
        due = now + w->o.deadline_ns;
    if (good && w->options.session && !w->name[0])
        come_back(w, w->options.session);
    tec_arena_finish(w->moment);
    if (good && w->options.reset)
        tec_safety_reset(safety_of(w));
    follow_resets(w);
    tec_slot_whole(w->slot, now, due, !own && w->options.wants_text && w->output);
    if (!w->slot->early)
        begin(w);
}

/* The reply in place of the engine's. `fresh`: the request has its own actions, but not its text.
 * `cause`: the reason for missing actions, if it is known. */
static struct tec_reply reply_of(const struct tec_watch *w, struct tec_handed handed, bool fresh,
                                 const char *cause, int64_t now)
{
    const struct tec_job *j = job_of(w);
    bool own = handed.source == TEC_SOURCE_FRESH;
    const double *actions = own ? handed.chunk : handed.actions;
    if (!cause && handed.source == TEC_SOURCE_STOPPED && w->was_stopped && !handed.left_out)
        cause = tec_cause_name(TEC_CAUSE_STOPPED);
    return (struct tec_reply){.actions = !w->wants_actions ? NULL
                                         : actions         ? actions
                                                           : j->actions,
                              .rows = own ? w->o.output.rows : handed.n,
                              .columns = w->o.output.width,
                              .policy_ms = 0.0,
                              .server_ms = (double)(now - w->slot->filled_ns) / 1e6,
                              .previous_ms = w->slot->previous_ms,
                              .extended = true,
                              .has_texts = w->wants_streams, /* none: they come with the next */
                              .has_text = w->wants_text,
                              .text = "",
                              .request = -1,
                              .reason = w->wants_text ? "deadline" : "",
                              .chunk_id = own ? j->chunk_id : -1,
                              .obs_ts = handed.captured_ns,
                              .source = tec_action_source_word(handed.source),
                              .cause = cause,
                              .limited = own ? handed.beyond.n : 0,
                              .age_us = handed.frame < 0 ? -1 : (now - handed.captured_ns) / 1000,
                              .missed = fresh ? j->slow || !(own || handed.left_out) : true,
                              .left_out = handed.left_out};
}

static void put(struct tec_watch *w, const struct tec_reply *r, bool own)
{
    struct tec_job *j = job_of(w);
    struct tec_reply_buffer out = {.data = j->reply, .room = j->room};
    tec_reply_pack(&out, r);
    w->slot->substituted = true;
    j->reply_n = out.n;
    j->failed = false;
    w->told = own;
    w->replied = true;
}

static void reply(struct tec_watch *w, struct tec_handed handed, bool fresh, const char *cause,
                  int64_t now)
{
    const struct tec_reply r = reply_of(w, handed, fresh, cause, now);
    put(w, &r, handed.source == TEC_SOURCE_FRESH);
}

/* The frame has left the actions out: what on_miss says, and all else that was asked for. */
static void reply_left_out(struct tec_watch *w, int64_t now)
{
    const struct tec_reply *beside = &job_of(w)->beside;
    struct tec_reply r = reply_of(w, hand_out(w, w->slot->tick, true), true, NULL, now);
    r.n_others = beside->n_others;
    r.others = beside->others;
    r.policy_ms = beside->policy_ms;
    r.server_ms = beside->server_ms;
    r.timing = beside->timing;
    r.extended = beside->extended;
    r.has_text = beside->has_text;
    r.text = beside->text;
    r.text_bytes = beside->text_bytes;
    r.text_done = beside->text_done;
    r.refused = beside->refused;
    r.request = beside->request;
    r.reason = beside->reason;
    put(w, &r, false);
}

/* Answer a job at its deadline, unless the engine was first. */
static bool expire(struct tec_watch *w, int64_t now)
{
    struct tec_job *j = job_of(w);
    int open = TEC_JOB_OPEN;
    if (tec_job_in_time(j))
        return false; /* the actions wait for their text, as was asked for */
    if (!atomic_compare_exchange_strong(&j->answer, &open, TEC_JOB_BY_WATCH))
        return false;
    bool acted = atomic_load_explicit(&j->acted, memory_order_acquire);
    bool fresh = acted && j->released_ns <= j->due_ns;
    reply(w, hand_out(w, w->slot->tick, fresh), fresh, NULL, now);
    tec_slot_expired(w->slot);
    return true;
}

/* Keep the actions of the engine's own reply, which is in time, as the connection's last command.
 * If it has no actions, reply with substitutes. */
static void keep(struct tec_watch *w, int64_t now)
{
    struct tec_job *j = job_of(w);
    bool refused = tec_beyond_refused(&j->beyond) && w->wants_actions;
    if (w->output && j->lost) {
        reply(w, hand_out(w, w->slot->tick, false), false, "model", now);
        return;
    }
    bool acted = atomic_load_explicit(&j->acted, memory_order_acquire);
    if (!w->output || j->failed || (!acted && !refused))
        return;
    if (j->left_out) {
        if (w->wants_actions)
            reply_left_out(w, now);
        return;
    }
    const struct tec_handed handed = hand_out(w, w->slot->tick, true);
    if (tec_beyond_refused(&handed.beyond))
        reply(w, handed, false, tec_cause_name(TEC_CAUSE_LIMITS), now);
    else if (handed.source != TEC_SOURCE_FRESH)
        reply(w, handed, true, NULL, now);  /* the reply says that the server is stopped */
    else if (handed.moved && j->actions_at) /* the limits moved the first row; a text stays */
        memcpy(j->reply + j->actions_at, handed.chunk,
               (size_t)w->o.output.rows * (size_t)w->o.output.width * sizeof *handed.chunk);
}

bool tec_watch_collected(struct tec_watch *w, int64_t now)
{
    struct tec_slot *s = w->slot;
    bool replied = false, was_early = s->early;
    if (!s->held && atomic_load(&job_of(w)->answer) == TEC_JOB_BY_ENGINE) {
        keep(w, now);
        return tec_slot_answered(s);
    }
    if (!s->held) { /* the engine is late, but this thread has not answered either */
        replied = s->connection && expire(w, now);
        s->held = true;
        s->held_tick = s->tick;
    }
    const struct tec_action_output_chunk chunk = chunk_of(w, s->held_tick);
    if (w->output && !w->told && atomic_load_explicit(&job_of(w)->acted, memory_order_acquire))
        tec_action_output_late(w->output, &chunk);
    tec_slot_returned(s);
    if (was_early && !s->early)
        begin(w);
    return replied;
}

void tec_watch_sent(struct tec_watch *w, int64_t now)
{
    bool was_early = w->slot->early;
    tec_slot_sent(w->slot, now);
    if (was_early && !w->slot->early)
        begin(w);
}

bool tec_watch_look(struct tec_watch *w, int64_t now)
{
    struct tec_slot *s = w->slot;
    if (!s->connection)
        return false;
    int64_t at = now + TEC_WATCH_LEAD_NS;
    if (s->state == TEC_SLOT_ENGINE)
        return job_of(w)->due_ns && job_of(w)->due_ns <= at && expire(w, now);
    if (s->state != TEC_SLOT_IDLE || !s->early || !s->early_due_ns || s->early_due_ns > at)
        return false;
    begin(w);
    tec_safety_skip(safety_of(w), s->filled_ns, s->early_due_ns);
    tec_slot_early_expired(s);
    reply(w, hand_out(w, s->tick, false), false, NULL, now);
    return true;
}

int64_t tec_watch_next(const struct tec_watch *w)
{
    const struct tec_slot *s = w->slot;
    const struct tec_job *j = &s->exchange->jobs[s->job];
    int64_t due = !s->connection                          ? 0
                  : s->state == TEC_SLOT_ENGINE           ? (tec_job_in_time(j) ? 0 : j->due_ns)
                  : s->state == TEC_SLOT_IDLE && s->early ? s->early_due_ns
                                                          : 0;
    return due ? due - TEC_WATCH_LEAD_NS : INT64_MAX;
}
