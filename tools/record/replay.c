/* replay.c - runs a recording's frames again, and compares actions, texts and plans. */
#include "tools/record/replay.h"

#include "base/json_text.h"
#include "tools/measure/machine.h"
#include "tools/record/replay_follow.h"
#include "tools/record/replay_options.h"
#include "tools/record/replay_page.h"
#include "tools/record/replay_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 4096 /* requests that are remembered at a time */, MAX_TEXT = 1024 };
enum { MAX_LEFT = 1024 /* chunks that leave in a frame */ };

/* The tokens of a request, as recorded and as made now. */
struct text {
    int64_t request;
    int n[2];
    bool done[2], whole[2], differs; /* whole: to its own end; else it was given up */
    int tokens[MAX_TEXT];
};

struct replay {
    const struct tec_replay_options *o;
    struct tec_invocation *call;
    struct tec_replay_counts *counts;
    struct tec_mcap_reader file;
    struct tec_replay_source source;
    struct tec_frames frames;
    struct tec_recorded recorded;
    struct tec_replay_follow follow;
    struct tec_recorded_frame ticks[TEC_MAX_SESSIONS]; /* of the frame's sessions */
    int n_ticks;
    bool ran; /* the ticks' frame has */
    bool matched[TEC_MAX_SESSIONS][MAX_LEFT];
    int64_t first_us, began_ns, first_stop_us;
    bool differs; /* of the frame's actions */
    struct tec_replay_page page;
    int64_t tokens[2], chunks[2]; /* by side */
    double took_us[2];            /* of frames, from start to end */
    struct text *texts;
    int64_t n_texts; /* so far; text i is at i mod TEXTS */
};

enum side { WAS, IS };

/* --- texts ------------------------------------------------------------------------------------ */

static struct text *text_of(struct replay *r, int64_t request)
{
    for (int64_t i = r->n_texts; i > 0 && i + TEXTS > r->n_texts; i--)
        if (r->texts[(i - 1) % TEXTS].request == request)
            return &r->texts[(i - 1) % TEXTS];
    struct text *fresh = &r->texts[r->n_texts++ % TEXTS];
    *fresh = (struct text){.request = request};
    return fresh;
}

/* A token of one side, held against the other side's where that is there already. */
static void add_token(struct replay *r, int64_t request, enum side side, int token)
{
    struct text *t = text_of(r, request);
    int at = t->n[side]++;
    r->tokens[side]++;
    if (at >= MAX_TEXT)
        return;
    if (at < t->n[!side])
        t->differs |= t->tokens[at] != token;
    else
        t->tokens[at] = token;
}

static void end_text(struct replay *r, int64_t request, enum side side, const char *reason)
{
    struct text *t = text_of(r, request);
    t->done[side] = true;
    t->whole[side] = tec_recorded_whole(reason);
}

/* Where decisions were followed a text ends as it did; where the policy decides anew it may be cut
 * at another place, or not end, and is compared as far as both sides have it. */
static void count_texts(struct replay *r)
{
    bool strict = r->follow.followed > 0;
    for (int64_t i = r->n_texts > TEXTS ? r->n_texts - TEXTS : 0; i < r->n_texts; i++) {
        const struct text *t = &r->texts[i % TEXTS];
        bool alike = t->n[WAS] == t->n[IS], both = t->done[WAS] && t->done[IS];
        alike &= t->whole[WAS] == t->whole[IS];
        bool ends = strict ? t->done[WAS] : t->whole[WAS] && t->whole[IS];
        bool differs = t->differs || (ends && !(both && alike));
        bool equal = !differs && both && alike;
        r->counts->texts_differ += differs;
        r->counts->texts_equal += equal;
        r->counts->texts_partial += !differs && !equal;
    }
}

static void take_texts(struct replay *r, const struct tec_frame_out *out)
{
    for (int i = 0; i < out->n_texts; i++) {
        const struct tec_frame_text *t = &out->texts[i];
        for (int k = 0; k < t->n; k++)
            add_token(r, t->request, IS, t->tokens[k]);
        if (t->done)
            end_text(r, t->request, IS, t->reason);
    }
}

static void take_recorded_text(struct replay *r, const json_t *json)
{
    int64_t request = json_integer_value(json_object_get(json, "request"));
    const json_t *token = json_object_get(json, "token");
    if (json_is_integer(token))
        add_token(r, request, WAS, (int)json_integer_value(token));
    if (json_is_true(json_object_get(json, "done")))
        end_text(r, request, WAS, json_string_value(json_object_get(json, "reason")));
}

/* --- running ---------------------------------------------------------------------------------- */

/* Wait until the recording's time, where a speed was asked for. */
static void keep_pace(struct replay *r, int64_t tick_us)
{
    if (r->counts->frames == 0) {
        r->first_us = tick_us;
        r->began_ns = tec_clock_now(&r->frames.clock);
    }
    r->counts->recorded_s = (double)(tick_us - r->first_us) / 1e6;
    if (r->o->speed > 0.0)
        tec_clock_wait(&r->frames.clock, r->began_ns + (int64_t)((double)(tick_us - r->first_us) *
                                                                 1e3 / r->o->speed));
}

static void forget(struct replay *r, const struct tec_recorded_frame *tick)
{
    if (tick->reset == TEC_RESET_ALL)
        tec_frames_reset(&r->frames);
    if (tick->reset == TEC_RESET_SESSION)
        tec_session_reset(r->frames.opened.engine->sessions[tick->again.session]);
}

/* Is the session in the frame? */
static bool ticks(const struct replay *r, int64_t session)
{
    for (int i = 0; i < r->n_ticks; i++)
        if (r->ticks[i].again.session == session)
            return true;
    return false;
}

static enum tec_status check_tick(struct replay *r, const struct tec_recorded_frame *tick,
                                  struct tec_error *err)
{
    const struct tec_flow *flow = tec_engine_flow(r->frames.opened.engine, 0);
    if (tick->again.session >= r->frames.n_sessions)
        return tec_fail(err, TEC_MALFORMED, "frame %lld: there is no session %d",
                        (long long)tick->again.number, tick->again.session);
    return tick->again.noise && tick->n_noise != (size_t)flow->horizon * (size_t)flow->dim
               ? tec_fail(err, TEC_MALFORMED, "frame %lld: its noise is not that of this model",
                          (long long)tick->again.number)
               : TEC_OK;
}

static enum tec_status run_frame(struct replay *r, struct tec_error *err)
{
    struct tec_frames *f = &r->frames;
    struct tec_frame_again parts[TEC_MAX_SESSIONS] = {{.session = 0}};
    keep_pace(r, r->ticks[0].tick_us);
    for (int i = 0; i < r->n_ticks; i++) {
        forget(r, &r->ticks[i]);
        parts[i] = r->ticks[i].again;
    }
    for (int i = 0; i < r->n_ticks; i++)
        tec_frames_ask(f, parts[i].session, &r->ticks[i].asks);
    TEC_TRY(tec_replay_follow_begin(&r->follow, &r->file, &parts[0], err));
    TEC_TRY(tec_context(err, tec_frames_again(f, parts, r->n_ticks, err), "frame %lld",
                        (long long)parts[0].number));
    tec_replay_follow_end(&r->follow);
    r->counts->frames++;
    r->counts->observed += parts[0].given.values != NULL;
    for (int i = 0; i < f->n_sessions; i++)
        take_texts(r, &f->sessions[i].out);
    memset(r->matched, 0, sizeof r->matched);
    r->differs = false;
    r->ran = true;
    return TEC_OK;
}

/* What left in the frame and is not in the recording. */
static void close_frame(struct replay *r)
{
    for (int i = 0; i < r->frames.n_sessions && r->ran; i++)
        for (int k = 0; k < r->frames.sessions[i].out.n_left; k++) {
            bool left = r->frames.sessions[i].out.left[k].chunk != NULL;
            r->chunks[IS] += left;
            r->counts->chunks_missing += !r->matched[i][k] && left;
        }
    r->n_ticks = 0;
    r->ran = false;
}

/* The ticks of a frame come together, before anything that left it; a frame of nothing is over when
 * one of its sessions has another. */
static enum tec_status take_tick(struct replay *r, const struct tec_recorded_frame *tick,
                                 struct tec_error *err)
{
    TEC_TRY(check_tick(r, tick, err));
    if (!r->ran && ticks(r, tick->again.session))
        TEC_TRY(run_frame(r, err));
    if (r->ran)
        close_frame(r);
    r->ticks[r->n_ticks++] = *tick;
    return TEC_OK;
}

static enum tec_status settle(struct replay *r, struct tec_error *err)
{
    return r->n_ticks > 0 && !r->ran ? run_frame(r, err) : TEC_OK;
}

/* A message of decisions: those of the frame, where it has not run. */
static enum tec_status take_decisions(struct replay *r, const json_t *json, struct tec_error *err)
{
    if (r->n_ticks > 0 && !r->ran)
        TEC_TRY(tec_replay_follow_take(&r->follow, json, err));
    return settle(r, err);
}

/* --- comparing -------------------------------------------------------------------------------- */

static bool same_chunk(const json_t *recorded, const float *chunk, size_t n)
{
    if (json_array_size(recorded) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(recorded, i);
        float was = (float)json_number_value(one);
        bool finite = isfinite(chunk[i]); /* what is not stands as null */
        if (finite != json_is_number(one) || (finite && memcmp(&was, &chunk[i], sizeof was) != 0))
            return false;
    }
    return true;
}

static void compare_actions(struct replay *r, const json_t *json, const char *node)
{
    int64_t session = json_integer_value(json_object_get(json, "session"));
    int64_t seen = json_integer_value(json_object_get(json, "seen"));
    const json_t *chunk = json_object_get(json, "chunk");
    const struct tec_frame_left *left = NULL;
    if (!r->ran || !ticks(r, session))
        return;
    r->chunks[WAS]++;
    const struct tec_frame_out *out = &r->frames.sessions[session].out;
    for (int i = 0; i < out->n_left && !left; i++)
        if (!r->matched[session][i] && out->left[i].chunk && out->left[i].seen == seen &&
            strcmp(r->frames.actions[out->left[i].action], node) == 0) {
            left = &out->left[i];
            r->matched[session][i] = true;
        }
    if (!left) {
        r->counts->chunks_missing++;
        r->differs = true;
        return;
    }
    bool same =
        same_chunk(chunk, left->chunk, tec_engine_chunk(r->frames.opened.engine, left->action));
    r->counts->chunks_equal += same;
    r->counts->chunks_differ += !same;
    r->differs |= !same;
}

/* A frame as a line of --diff. */
static json_t *line_of(const struct replay *r, const json_t *frame,
                       const struct tec_frame_record *now, json_t *was, json_t *is)
{
    bool late = json_is_true(json_object_get(frame, "missed"));
    json_t *line = json_pack("{s:I, s:i, s:O, s:O, s:b, s:I, s:I, s:b, s:b}", "frame",
                             (json_int_t)now->frame, "session", now->session, "was", was, "is", is,
                             "actions_equal", (int)!r->differs, "was_us",
                             json_integer_value(json_object_get(frame, "end_us")) -
                                 json_integer_value(json_object_get(frame, "start_us")),
                             "is_us", (json_int_t)((now->end_ns - now->start_ns) / 1000),
                             "was_missed", (int)late, "is_missed", (int)now->missed);
    if (line && now->missed)
        json_object_set_new(line, "is_cause", json_string(tec_cause_name(now->cause)));
    if (line && late)
        json_object_set(line, "was_cause", json_object_get(frame, "cause"));
    return line;
}

/* Behind a frame: its plan against the recorded one. */
static enum tec_status compare_plan(struct replay *r, const json_t *frame, struct tec_error *err)
{
    int64_t session = json_integer_value(json_object_get(frame, "session"));
    if (!r->ran || !ticks(r, session))
        return TEC_OK;
    const struct tec_frame_record *now = r->frames.sessions[session].out.record;
    json_t *was = tec_replay_plan_was(frame), *is = tec_replay_plan_is(now);
    bool same = json_equal(was, is), differs = !same || r->differs;
    r->counts->plans_equal += same;
    r->counts->plans_differ += !same;
    enum tec_status status = TEC_OK;
    json_t *line = r->o->html || (r->o->diff && differs) ? line_of(r, frame, now, was, is) : NULL;
    r->took_us[WAS] += json_number_value(json_object_get(line, "was_us"));
    r->took_us[IS] += json_number_value(json_object_get(line, "is_us"));
    if (r->o->html)
        tec_replay_page_add(&r->page, line, differs);
    if (r->o->diff && differs)
        status = tec_json_print(r->call->out, line, JSON_COMPACT, "a difference", err);
    json_decref(line);
    json_decref(was);
    json_decref(is);
    return status;
}

/* Stops were the robot's: nothing is stopped again, what is recorded is told. */
static void take_stops(struct replay *r, const json_t *json)
{
    struct tec_replay_counts *c = r->counts;
    int64_t stops = json_integer_value(json_object_get(json, "stops"));
    if (c->stops == 0 && stops > 0)
        r->first_stop_us = json_integer_value(json_object_get(json, "at_us"));
    c->stops = stops;
    c->resets = json_integer_value(json_object_get(json, "resets"));
    c->stopped = json_is_true(json_object_get(json, "stopped"));
}

/* --- the whole -------------------------------------------------------------------------------- */

static enum tec_status take(struct replay *r, bool *more, struct tec_error *err)
{
    enum tec_recorded_message what;
    struct tec_recorded_frame tick;
    json_t *json = NULL;
    char node[120];
    enum tec_status status = tec_recorded_next(&r->recorded, &what, &tick, &json, node, more, err);
    bool outcome = what != TEC_RECORDED_TICK && what != TEC_RECORDED_SAFETY &&
                   what != TEC_RECORDED_NOT_BEGUN && what != TEC_RECORDED_DECISIONS &&
                   what != TEC_RECORDED_OTHER;
    if (status == TEC_OK && outcome)
        status = settle(r, err);
    if (status == TEC_OK && what == TEC_RECORDED_TICK)
        status = take_tick(r, &tick, err);
    else if (status == TEC_OK && what == TEC_RECORDED_DECISIONS)
        status = take_decisions(r, json, err);
    else if (status == TEC_OK && what == TEC_RECORDED_ACTIONS)
        compare_actions(r, json, node);
    else if (status == TEC_OK && what == TEC_RECORDED_TEXT)
        take_recorded_text(r, json);
    else if (status == TEC_OK && what == TEC_RECORDED_SAFETY)
        take_stops(r, json);
    else if (status == TEC_OK && what == TEC_RECORDED_NOT_BEGUN)
        status = tec_recorded_not_begun(r->counts->not_begun, json, err);
    else if (status == TEC_OK && what == TEC_RECORDED_FRAME)
        status = compare_plan(r, json, err);
    json_decref(json);
    return tec_context(err, status, "%s", r->o->path);
}

static json_t *shown(const char *text)
{
    return text ? tec_json_shown(text) : json_null();
}

static json_t *copy_of(const json_t *object, const char *key)
{
    return json_incref(json_object_get(object, key));
}

/* So many in a second of frames, as `bench` counts it; null with several sessions, whose frames are
 * one. */
static json_t *rate(const struct replay *r, const int64_t n[2], enum side side)
{
    bool known = r->frames.n_sessions == 1 && r->took_us[side] > 0.0;
    return known ? json_real((double)n[side] * 1e6 / r->took_us[side]) : json_null();
}

/* What ran then and now, and how much of it gave the same. */
static enum tec_status write_page(struct replay *r, struct tec_error *err)
{
    const struct tec_replay_counts *c = r->counts;
    const struct tec_engine *e = r->frames.opened.engine;
    const json_t *about = r->source.about, *then = json_object_get(about, "machine");
    struct tec_replay_page *p = &r->page;
    json_t *machine = tec_machine_json(e->device), *verb = json_object_get(about, "verb");
    tec_replay_page_fact(p, "policy", copy_of(about, "policy"),
                         shown(tec_used_policy(&r->frames.opened)));
    tec_replay_page_fact(p, "chunks in a second of frames", rate(r, r->chunks, WAS),
                         rate(r, r->chunks, IS));
    tec_replay_page_fact(p, "tokens in a second of frames", rate(r, r->tokens, WAS),
                         rate(r, r->tokens, IS));
    tec_replay_page_fact(p, "chunks that are the same", NULL, json_integer(c->chunks_equal));
    tec_replay_page_fact(p, "chunks that are not", NULL, json_integer(c->chunks_differ));
    tec_replay_page_fact(p, "chunks of one side alone", NULL, json_integer(c->chunks_missing));
    tec_replay_page_fact(p, "texts that are the same", NULL, json_integer(c->texts_equal));
    tec_replay_page_fact(p, "texts that are not", NULL, json_integer(c->texts_differ));
    tec_replay_page_fact(p, "device", copy_of(about, "device"),
                         json_string(tec_device_computes(e->device)));
    tec_replay_page_fact(p, "processor", copy_of(then, "cpu"), copy_of(machine, "cpu"));
    tec_replay_page_fact(p, "cores", copy_of(then, "cores"), copy_of(machine, "cores"));
    tec_replay_page_fact(p, "commit", copy_of(about, "commit"), json_string(tec_machine_commit()));
    tec_replay_page_fact(p, "verb", json_incref(verb), json_string("replay"));
    tec_replay_page_fact(p, "of", copy_of(about, "path"), shown(r->o->path));
    json_decref(machine);
    const char *name = json_string_value(json_object_get(about, "pipeline"));
    return tec_context(err, tec_replay_page_write(p, r->o->html, name ? name : "recording", err),
                       "--html");
}

static enum tec_status open(struct replay *r, struct tec_error *err)
{
    bool follows = !tec_replay_decides_afresh(&r->call->shared);
    TEC_TRY(tec_mcap_read(&r->file, r->o->path, err));
    TEC_TRY(tec_replay_source_open(&r->source, r->call, &r->file, err));
    if (!r->o->empty_memories)
        TEC_TRY(tec_replay_memories(&r->source, r->call, &r->file, err));
    TEC_TRY(tec_replay_check_stores(&r->source, r->call, err));
    r->texts = tec_heap_get(r->call->heap, TEXTS * sizeof *r->texts);
    if (!r->texts)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a replay");
    if (r->o->html)
        TEC_TRY(tec_replay_page_open(&r->page, r->call->heap, err));
    const struct tec_engine_options more = {.dtype = r->source.dtype,
                                            .forgets = true,
                                            .starts = r->source.starts,
                                            .n_starts = r->source.n_starts,
                                            .actions = r->source.actions};
    if (r->call->shared.random_weights.given)
        TEC_TRY(tec_replay_source_weights(&r->source, r->call, NULL, err));
    TEC_TRY(tec_frames_open(&r->frames, r->call, r->source.pipeline, &more, err));
    if (r->frames.max_left > MAX_LEFT)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: more than %d chunks leave in a frame",
                        r->o->path, MAX_LEFT);
    const struct tec_engine *e = r->frames.opened.engine;
    if (e->checkpoint && !e->options.random)
        TEC_TRY(tec_replay_source_weights(&r->source, r->call, e->checkpoint, err));
    tec_recorded_init(&r->recorded, &r->file, r->call->heap);
    return follows ? tec_replay_follow_open(&r->follow, r->frames.opened.engine, r->call->heap, err)
                   : TEC_OK;
}

static enum tec_status run(struct replay *r, struct tec_error *err)
{
    bool more = true;
    TEC_TRY(open(r, err));
    while (more)
        TEC_TRY(take(r, &more, err));
    TEC_TRY(settle(r, err));
    close_frame(r);
    count_texts(r);
    r->counts->followed = r->follow.followed;
    r->counts->by_policy = r->counts->frames - r->follow.followed;
    tec_replay_follow_tell(&r->follow, r->call, r->o->path);
    r->counts->first_stop_s = ((double)r->first_stop_us - (double)r->first_us) / 1e6;
    r->counts->seconds = (double)(tec_clock_now(&r->frames.clock) - r->began_ns) / 1e9;
    if (!r->counts->frames && r->file.damage[0])
        return tec_fail(err, TEC_MALFORMED, "%s: %s; there is no frame in what can be read",
                        r->o->path, r->file.damage);
    if (r->file.damage[0])
        tec_say(r->call, "%s: %s", r->o->path, r->file.damage);
    if (!r->counts->frames)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: there is no frame with inputs in it: a dump of the flight recorder "
                        "cannot be replayed",
                        r->o->path);
    return r->o->html ? write_page(r, err) : TEC_OK;
}

enum tec_status tec_replay_run(struct tec_replay_counts *out, struct tec_invocation *call,
                               const struct tec_replay_options *options, struct tec_error *err)
{
    struct replay *r = tec_heap_get(call->heap, sizeof *r);
    if (!r)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a replay");
    *r = (struct replay){.o = options, .call = call, .counts = out};
    *out = (struct tec_replay_counts){.frames = 0};
    enum tec_status status = run(r, err);
    bool differs =
        out->chunks_differ || out->chunks_missing || out->texts_differ || out->plans_differ;
    status = tec_replay_source_tell(&r->source, call, differs, status, err);
    if (r->recorded.file)
        tec_recorded_finish(&r->recorded);
    tec_replay_page_close(&r->page);
    tec_replay_follow_close(&r->follow);
    tec_frames_close(&r->frames);
    tec_replay_source_close(&r->source);
    tec_mcap_read_close(&r->file);
    tec_heap_put(call->heap, r->texts);
    tec_heap_put(call->heap, r);
    return status;
}
