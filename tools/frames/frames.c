/* frames.c - runs one frame after another for a verb: it gives values to the session, runs the
 * loop, and collects texts. */
#include "tools/frames/frames.h"
#include "tools/frames/frames_left.h"
#include "tools/frames/frames_record.h"
#include "tools/frames/memory_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void find_nodes(struct tec_frames *f)
{
    const struct tec_topology *t = &f->opened.engine->topology;
    const struct tec_loop_options *loop = tec_loop_settings(f->opened.engine->loop);
    f->n_actions = loop->n_actions;
    for (int i = 0; i < loop->n_actions; i++)
        f->actions[i] = loop->actions[i].name;
    f->stages = tec_topology_stages(t);
    for (int i = 0; i < t->n_nodes; i++) {
        const struct tec_pipeline *p = f->opened.pipeline;
        if (!tec_topology_decodes(t, i) || f->n_decoders == TEC_MAX_DECODERS)
            continue;
        f->lists[f->n_decoders] = &p->nodes[tec_pipeline_find_node(p, t->nodes[i].name)].choices;
        f->decoders[f->n_decoders++] = t->nodes[i].name;
    }
}

static enum tec_status make_session(struct tec_frames *f, struct tec_frames_session *s,
                                    struct tec_error *err)
{
    size_t most = (size_t)f->max_left;
    s->left = TEC_NEW(&f->arena, most + 1, struct tec_frame_left);
    s->chunks = TEC_NEW(&f->arena, most * f->chunk + 1, float);
    s->numbers = TEC_NEW(&f->arena, most * f->actions_size + 1, double);
    if (!s->left || !s->chunks || !s->numbers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the results of a frame");
    for (int i = 0; i < f->n_actions; i++)
        TEC_TRY(tec_frames_left_output(f, s, i, err));
    return TEC_OK;
}

static enum tec_status take_memory(struct tec_frames *f, struct tec_error *err)
{
    const struct tec_engine *e = f->opened.engine;
    const struct tec_action_room room = tec_engine_room(e);
    size_t texts = (size_t)tec_loop_utterances(e->loop);
    f->model = e->model;
    f->chunk = room.chunk;
    f->actions_size = (size_t)room.rows * (size_t)room.columns;
    f->max_left = f->n_actions + e->topology.n_rings * f->stages;
    f->n_sessions = e->n_sessions;
    f->sessions = TEC_NEW(&f->arena, (size_t)f->n_sessions, struct tec_frames_session);
    f->readers = TEC_NEW(&f->arena, texts + 1, struct tec_frame_reader);
    f->texts = TEC_NEW(&f->arena, texts + 1, struct tec_frame_text);
    if (!f->sessions || !f->readers || !f->texts)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the results of a frame");
    for (int i = 0; i < f->n_sessions; i++)
        TEC_TRY(make_session(f, &f->sessions[i], err));
    TEC_TRY(tec_runtime_attach(&f->runtime, f->opened.engine, &f->arena, err));
    TEC_TRY(tec_runtime_record(&f->runtime, &f->arena, err));
    tec_frames_reset(f);
    return TEC_OK;
}

static enum tec_status open_at(struct tec_frames *f, struct tec_invocation *call, const char *path,
                               const struct tec_engine_options *more, bool saturated,
                               struct tec_error *err)
{
    struct tec_engine_options options = *more;
    const struct tec_runtime_listener listener = {.left = tec_frames_left_keep, .user = f};
    *f = (struct tec_frames){.frame = 0};
    tec_runtime_init(&f->runtime, &listener);
    tec_arena_init(&f->arena, call->heap);
    tec_arena_init(&f->moment, call->heap);
    options.saturated = options.settles = saturated;
    options.released = tec_runtime_released;
    options.events = tec_runtime_events(&f->runtime);
    options.user = &f->runtime;
    TEC_TRY(tec_cli_open_engine(&f->opened, call, path, &options, err));
    find_nodes(f);
    enum tec_status status = take_memory(f, err);
    if (status == TEC_OK && !saturated && f->opened.engine->topology.period_us <= 0)
        status =
            tec_fail(err, TEC_INVALID, "%s: frames at a period need frame { period_ms }", path);
    if (status == TEC_OK)
        status = tec_use_policy(&f->opened, NULL, err);
    if (status != TEC_OK)
        tec_frames_close(f);
    return status;
}

enum tec_status tec_frames_open(struct tec_frames *f, struct tec_invocation *call, const char *path,
                                const struct tec_engine_options *more, struct tec_error *err)
{
    return open_at(f, call, path, more, true, err);
}

enum tec_status tec_frames_open_paced(struct tec_frames *f, struct tec_invocation *call,
                                      const char *path, const struct tec_engine_options *more,
                                      struct tec_error *err)
{
    return open_at(f, call, path, more, false, err);
}

void tec_frames_close(struct tec_frames *f)
{
    if (!f->opened.call)
        return;
    tec_close_engine(&f->opened);
    tec_arena_finish(&f->moment);
    tec_arena_finish(&f->arena);
}

void tec_frames_reset(struct tec_frames *f)
{
    struct tec_loop *loop = f->opened.engine->loop;
    f->reset = true;
    tec_loop_restart(loop);
    for (int i = 0; i < tec_loop_utterances(loop); i++)
        tec_cursor_end(&f->readers[i].at, tec_loop_utterance(loop, i));
    f->frame = 0;
    for (int n = 0; n < f->n_sessions; n++) {
        struct tec_frames_session *s = &f->sessions[n];
        tec_session_reset(f->opened.engine->sessions[n]);
        s->n_asks = s->n_cancels = 0;
        for (int i = 0; i < f->n_actions; i++)
            if (s->outputs[i])
                tec_action_output_forget(s->outputs[i]);
    }
}

/* Decode the text that n new tokens add; at the end of a text also what was held back. */
static enum tec_status speak(struct tec_frames *f, struct tec_frame_reader *r,
                             struct tec_frame_text *t, struct tec_error *err)
{
    char piece[TEC_DETOKENIZER_BYTES];
    size_t used = 0, room = 64;
    char *text = TEC_NEW(&f->moment, room, char);
    t->text = text;
    if (!r->reads)
        return text ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a text");
    for (int i = 0; text && i < t->n + t->done; i++) {
        size_t n = i < t->n ? tec_detokenizer_push(&r->speaker, t->tokens[i], piece, sizeof piece)
                            : tec_detokenizer_flush(&r->speaker, piece, sizeof piece);
        if (used + n + 1 > room) {
            char *more = TEC_NEW(&f->moment, room = 2 * (used + n + 1), char);
            if (more)
                memcpy(more, text, used);
            text = more;
        }
        if (text)
            memcpy(text + used, piece, n);
        used += n;
    }
    t->text = text;
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a text");
    text[used] = '\0';
    return TEC_OK;
}

static enum tec_status read_text(struct tec_frames *f, int i, int *n, struct tec_error *err)
{
    const struct tec_engine *e = f->opened.engine;
    const struct tec_utterance *u = tec_loop_utterance(e->loop, i);
    struct tec_frame_reader *r = &f->readers[i];
    int done = atomic_load_explicit(&u->done, memory_order_acquire);
    int count = atomic_load_explicit(&u->count, memory_order_acquire);
    if (tec_cursor_follow(&r->at, u)) {
        const struct tec_tokenizer *tokenizer = tec_engine_tokenizer(e, u->decoder);
        r->reads = tokenizer != NULL;
        if (tokenizer)
            tec_detokenizer_init(&r->speaker, tokenizer, true);
    }
    if (u->id < 0 || r->at.ended || (count == r->at.read && !done))
        return TEC_OK;
    struct tec_frame_text *t = &f->texts[(*n)++];
    *t = (struct tec_frame_text){.request = u->id,
                                 .session = f->n_sessions > 1 ? u->session : 0,
                                 .decoder = u->decoder,
                                 .n = count - r->at.read,
                                 .tokens = u->tokens + r->at.read,
                                 .done = done != 0,
                                 .reason = done ? u->reason : "",
                                 .n_whole = count,
                                 .all = u->tokens};
    TEC_TRY(speak(f, r, t, err));
    r->at.read = count;
    if (!done)
        return TEC_OK;
    tec_cursor_end(&r->at, u);
    char *whole = NULL;
    TEC_TRY(tec_engine_text(e, u, count, &f->moment, &whole, err));
    t->whole = whole ? whole : "";
    t->n_ranked = u->n_ranked;
    t->ranked = u->ranked;
    t->list = f->lists[u->decoder];
    return TEC_OK;
}

static int by_request(const void *a, const void *b)
{
    const struct tec_frame_text *x = a, *y = b;
    if (x->session != y->session)
        return x->session - y->session;
    return (x->request > y->request) - (x->request < y->request);
}

static enum tec_status read_texts(struct tec_frames *f, struct tec_error *err)
{
    int n = 0, at = 0;
    for (int i = 0; i < tec_loop_utterances(f->opened.engine->loop); i++)
        TEC_TRY(read_text(f, i, &n, err));
    qsort(f->texts, (size_t)n, sizeof *f->texts, by_request);
    for (int i = 0; i < f->n_sessions; i++) {
        struct tec_frame_out *out = &f->sessions[i].out;
        out->texts = f->texts + at;
        for (out->n_texts = 0; at < n && f->texts[at].session == i; at++)
            out->n_texts++;
    }
    return TEC_OK;
}

void tec_frames_ask(struct tec_frames *f, int session, const struct tec_input_asks *asks)
{
    struct tec_frames_session *s = &f->sessions[session];
    s->n_asks = asks->n_asks;
    s->n_cancels = asks->n_cancels;
    memcpy(s->cancels, asks->cancels, sizeof s->cancels);
    for (int i = 0; i < asks->n_asks; i++) {
        const struct tec_input_ask *from = &asks->asks[i];
        s->asks[i] = (struct tec_ask){.max_tokens = from->max_tokens, .prio = from->prio};
        for (int d = 0; d < f->n_decoders; d++)
            if (strcmp(f->decoders[d], from->node) == 0)
                s->asks[i].decoder = d;
    }
}

static enum tec_status begin(struct tec_frames *f, struct tec_error *err)
{
    TEC_TRY(tec_engine_failure(f->opened.engine, err));
    tec_arena_finish(&f->moment);
    return TEC_OK;
}

static enum tec_status observe(struct tec_frames *f, int session, int64_t number,
                               const struct tec_frame_given *given, const float *noise,
                               int64_t captured_ns, struct tec_error *err)
{
    struct tec_frames_session *s = &f->sessions[session];
    s->out = (struct tec_frame_out){.observed = given->values != NULL};
    s->number = number;
    s->n_left = 0;
    tec_frame_memory_count(f->opened.engine, session, s->remembered);
    if (!given->values)
        return TEC_OK;
    tec_engine_settle(f->opened.engine);
    s->noise = noise;
    TEC_TRY(tec_session_observe(f->opened.engine->sessions[session], given->values, given->n, noise,
                                number, captured_ns, &s->out.input, s->out.warning, err));
    tec_recording_inputs(f->recording, session, number, given->values, given->n);
    return TEC_OK;
}

/* Texts come every so many observations of the session's episode. */
static void count(struct tec_frames *f, struct tec_tick *tick)
{
    struct tec_frames_session *s = &f->sessions[tick->session];
    tec_loop_count(f->opened.engine->loop, &s->counted, s->out.observed ? &s->out.input : NULL,
                   tick);
}

/* Put what a session asked for into its tick; returns what it sees. */
static struct tec_runtime_seen fill_tick(struct tec_frames *f, struct tec_tick *tick)
{
    struct tec_frames_session *s = &f->sessions[tick->session];
    tick->asks = s->asks;
    tick->n_asks = s->n_asks;
    tick->cancels = s->cancels;
    tick->n_cancels = s->n_cancels;
    tick->cancelled = s->cancelled;
    if (!s->out.observed)
        return (struct tec_runtime_seen){.number = s->number, .acts_for = s->number};
    return (struct tec_runtime_seen){
        .input = &s->out.input,
        .number = s->number,
        .acts_for = s->number,
        .state_raw = tec_session_observation(f->opened.engine->sessions[tick->session])->state_raw};
}

static void take_outcome(struct tec_frames *f, struct tec_frames_session *s,
                         const struct tec_frame_record *record)
{
    s->out.record = record;
    s->out.n_asks = s->n_asks;
    s->out.n_cancels = s->n_cancels;
    s->out.asks = s->asks;
    s->out.cancels = s->cancels;
    s->out.cancelled = s->cancelled;
    s->n_asks = s->n_cancels = 0;
    tec_frames_left_take(f, s, record);
}

/* Run the frame of the sessions of these ticks, and give each reader the outcome. */
static enum tec_status run(struct tec_frames *f, struct tec_tick *ticks, int n,
                           struct tec_error *err)
{
    struct tec_loop *loop = f->opened.engine->loop;
    struct tec_runtime_seen seen[TEC_MAX_SESSIONS] = {{.number = 0}};
    for (int i = 0; i < n; i++) {
        seen[i] = fill_tick(f, &ticks[i]);
        tec_frames_record_tick(f, &ticks[i]);
    }
    tec_runtime_frame(&f->runtime, seen, ticks, n);
    for (int i = 0; i < n; i++) {
        take_outcome(f, &f->sessions[ticks[i].session], tec_loop_record(loop, i));
        tec_frames_record_frame(f, tec_loop_record(loop, i));
    }
    f->reset = false;
    f->frame++;
    return read_texts(f, err);
}

enum tec_status tec_frames_next_of_all(struct tec_frames *f, const struct tec_frame_given *given,
                                       const float *noise, int *failed, struct tec_error *err)
{
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    int64_t now = tec_clock_now(&f->clock);
    TEC_TRY(begin(f, err));
    for (int i = 0; i < f->n_sessions; i++) {
        *failed = i;
        TEC_TRY(observe(f, i, f->frame, &given[i], noise, now, err));
    }
    for (int i = 0; i < f->n_sessions; i++) {
        ticks[i] = tec_loop_tick(f->opened.engine->loop, now, 0);
        ticks[i].session = i;
        count(f, &ticks[i]);
        ticks[i].late_ns = given[i].values ? tec_clock_now(&f->clock) - now : 0;
    }
    if (f->frame == 0)
        f->began_ns = now;
    return run(f, ticks, f->n_sessions, err);
}

enum tec_status tec_frames_again(struct tec_frames *f, const struct tec_frame_again *parts, int n,
                                 struct tec_error *err)
{
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    int64_t now = tec_clock_now(&f->clock);
    TEC_TRY(begin(f, err));
    for (int i = 0; i < f->n_sessions; i++)
        f->sessions[i].out = (struct tec_frame_out){.observed = false};
    for (int i = 0; i < n; i++) {
        const struct tec_frame_again *p = &parts[i];
        TEC_TRY(observe(f, p->session, p->number, &p->given, p->noise, now, err));
        ticks[i] = tec_loop_tick(f->opened.engine->loop, now, 0);
        ticks[i].session = p->session;
        ticks[i].frame = p->frame;
        ticks[i].ahead = p->ahead;
        ticks[i].counted = p->counted;
        ticks[i].spawn = p->spawn;
        ticks[i].mute = p->mute;
        ticks[i].rests = p->rests;
        ticks[i].late_ns = p->given.values ? tec_clock_now(&f->clock) - now : 0;
    }
    return run(f, ticks, n, err);
}

enum tec_status tec_frames_next(struct tec_frames *f, const struct tec_value *values, size_t n,
                                const float *noise, const struct tec_frame_out **out,
                                struct tec_error *err)
{
    struct tec_frame_given given[TEC_MAX_SESSIONS] = {{values, n}};
    int failed;
    *out = &f->sessions->out;
    return tec_frames_next_of_all(f, given, noise, &failed, err);
}

enum tec_status tec_frames_tick(struct tec_frames *f, int64_t tick_ns, int64_t waited_ns,
                                const struct tec_frame_given *given, const float *noise,
                                int *failed, struct tec_error *err)
{
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    struct tec_loop *loop = f->opened.engine->loop;
    int64_t begun_ns = tec_clock_now(&f->clock), begun_cpu_ns = tec_clock_thread();
    TEC_TRY(begin(f, err));
    for (int i = 0; i < f->n_sessions; i++) {
        *failed = i;
        TEC_TRY(observe(f, i, f->frame, &given[i], noise, tick_ns, err));
    }
    /* What the thread did not run of that time is the host's. */
    int64_t prepared_ns = tec_clock_now(&f->clock) - begun_ns;
    int64_t ran_ns = tec_clock_thread() - begun_cpu_ns;
    prepared_ns = ran_ns < prepared_ns ? ran_ns : prepared_ns;
    for (int i = 0; i < f->n_sessions; i++) {
        ticks[i] = tec_loop_tick(loop, tick_ns, 0);
        ticks[i].session = i;
        ticks[i].frame = f->frame;
        count(f, &ticks[i]);
        ticks[i].late_ns = given[i].values ? prepared_ns + waited_ns : 0;
    }
    return run(f, ticks, f->n_sessions, err);
}

int tec_frame_batch(const struct tec_frames *f, const struct tec_frame_record *record,
                    int *launches)
{
    int most = 0, n = 0;
    for (int i = 0; i < record->n_launches; i++)
        for (int d = 0; d < f->n_decoders; d++)
            if (strcmp(record->launches[i].node, f->decoders[d]) == 0) {
                n++;
                most = record->launches[i].rows > most ? record->launches[i].rows : most;
            }
    if (launches)
        *launches = n;
    return most;
}
