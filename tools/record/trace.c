/* trace.c - finds the tracks, slices, counters and flows of a trace in a flight recorder's events.
 */
#include "tools/record/trace.h"

#include "base/json_text.h"
#include "tools/record/explain.h"
#include "tools/record/trace_flows.h"
#include "tools/record/trace_slots.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 3, NO_TRACK = 0, LOOK_AHEAD = 16384 /* events */ };

/* Flows are told apart by their upper bits. */
enum flow_kind { FLOW_OBSERVATION = 1, FLOW_REQUEST = 2 };

/* A request that is alive; its track is another one's when it has ended. */
struct alive {
    int track;
    bool busy;
    int64_t request, since_ns;
};

struct trace {
    struct tec_tracing_sink *s;
    struct tec_flight *f;
    int64_t from_ns;
    int sessions[TEC_MAX_SESSIONS], lanes[LANES], nodes[TEC_MAX_NODES], policy;
    int chunks[TEC_MAX_NODES][TEC_MAX_SESSIONS];
    int kv[TEC_FLIGHT_WORDS + 1];
    struct alive alive[TEC_TRACE_REQUESTS];
    struct tec_tracing_flows flows;
    int slack, age, in_flight, tokens;
};

static uint64_t flow_of(enum flow_kind kind, int session, int64_t number)
{
    return (uint64_t)kind << 56 | (uint64_t)(unsigned)session << 48 |
           ((uint64_t)number & 0xffffffffffffULL);
}

static void put(struct trace *t, const struct tec_tracing_event *event, json_t *args)
{
    struct tec_tracing_event e = *event;
    e.args = args;
    if (e.track != NO_TRACK && e.start_ns >= t->from_ns)
        tec_tracing_event(t->s, &e);
    json_decref(args);
}

/* --- tracks ----------------------------------------------------------------------------------- */

static void make_tracks(struct trace *t)
{
    const struct tec_flight *f = t->f;
    char name[96];
    int sessions = 1, lanes = 1;
    for (size_t i = 0; i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (e->session < TEC_MAX_SESSIONS && e->session >= sessions)
            sessions = e->session + 1;
        if (e->lane < LANES && e->lane >= lanes)
            lanes = e->lane + 1;
    }
    for (int i = 0; i < sessions; i++) {
        snprintf(name, sizeof name, sessions > 1 ? "frames, session %d" : "frames", i);
        t->sessions[i] = tec_tracing_track(t->s, name, NULL);
    }
    t->policy = tec_tracing_track(t->s, "policy", NULL);
    for (int i = 0; i < f->n_nodes; i++) {
        snprintf(name, sizeof name, "node %.80s", f->nodes[i]);
        t->nodes[i] = tec_tracing_track(t->s, name, NULL);
    }
    for (int i = 0; i < lanes; i++) {
        snprintf(name, sizeof name, "stream %d", i);
        t->lanes[i] = tec_tracing_track(t->s, name, NULL);
    }
    t->slack = tec_tracing_track(t->s, "slack", "ms");
    t->age = tec_tracing_track(t->s, "age of the observation", "ms");
    t->in_flight = tec_tracing_track(t->s, "requests in flight", "requests");
    t->tokens = tec_tracing_track(t->s, "tokens a second", "tokens/s");
}

static int kv_track(struct trace *t, int word)
{
    char name[96];
    if (word > 0 && word <= TEC_FLIGHT_WORDS && t->kv[word] == NO_TRACK) {
        snprintf(name, sizeof name, "memory %.80s", t->f->words[word]);
        t->kv[word] = tec_tracing_track(t->s, name, NULL);
    }
    return word > 0 && word <= TEC_FLIGHT_WORDS ? t->kv[word] : NO_TRACK;
}

/* --- frames and launches ---------------------------------------------------------------------- */

static enum tec_status put_frame(struct trace *t, size_t at, struct tec_error *err)
{
    const struct tec_flight_frame *frame = &t->f->frames[at];
    char name[48];
    int session = frame->session < TEC_MAX_SESSIONS ? frame->session : 0;
    if (frame->end_ns < 0)
        return TEC_OK;
    json_t *args =
        json_pack("{s:I, s:b, s:I, s:I, s:i}", "frame", (json_int_t)frame->frame, "missed",
                  (int)frame->missed, "host_us", (json_int_t)frame->host_us, "late_us",
                  (json_int_t)(frame->late_ns / 1000), "tokens", frame->tokens);
    snprintf(name, sizeof name, "frame %lld%s", (long long)frame->frame,
             frame->missed ? " missed" : "");
    if (frame->missed) {
        struct tec_miss miss;
        enum tec_status status = tec_explain_miss(&miss, t->f, frame, err);
        if (status != TEC_OK) {
            json_decref(args);
            return status;
        }
        json_object_set_new(args, "cause", json_string(miss.cause));
        json_object_set_new(args, "words", tec_json_shown(miss.words));
        json_object_set_new(args, "us_over", json_integer(miss.us_over));
    }
    put(t,
        &(struct tec_tracing_event){.track = t->sessions[session],
                                    .name = name,
                                    .start_ns = frame->start_ns,
                                    .end_ns = frame->end_ns,
                                    .flow = flow_of(FLOW_OBSERVATION, session, frame->frame),
                                    .step = t->flows.of_frame[at]},
        args);
    if (frame->start_ns < t->from_ns)
        return TEC_OK;
    double seconds = (double)(frame->end_ns - frame->start_ns) / 1e9;
    tec_tracing_count(t->s, t->in_flight, "requests in flight", frame->end_ns, frame->in_flight);
    if (seconds > 0.0)
        tec_tracing_count(t->s, t->tokens, "tokens a second", frame->end_ns,
                          (double)frame->tokens / seconds);
    if (frame->age_us >= 0)
        tec_tracing_count(t->s, t->age, "age of the observation", frame->end_ns,
                          (double)frame->age_us / 1e3);
    if (frame->age_us >= 0 && frame->deadline_us >= 0)
        tec_tracing_count(t->s, t->slack, "slack", frame->end_ns, (double)frame->slack_us / 1e3);
    return TEC_OK;
}

static void put_launch(struct trace *t, const struct tec_flight_launch *l)
{
    const char *node = tec_flight_node(t->f, l->node);
    struct tec_tracing_event e = {
        .name = l->what[0] ? l->what : node, .start_ns = l->start_ns, .end_ns = l->end_ns};
    if (l->node < 0 || l->node >= t->f->n_nodes)
        return;
    e.track = t->nodes[l->node];
    put(t, &e, json_pack("{s:i, s:i, s:i}", "rows", l->rows, "batch", l->padded, "k", l->k));
    e.track = l->lane < LANES ? t->lanes[l->lane] : NO_TRACK;
    put(t, &e, json_pack("{s:i, s:i}", "rows", l->rows, "k", l->k));
}

/* The plan: from when the frame asked the policy until the decision was there. */
static void put_plan(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    json_t *args = json_pack("{s:I, s:i}", "snapped", (json_int_t)e->value, "launches", e->more);
    int64_t planner_ns = 0;
    for (size_t i = at; i > 0; i--)
        if (t->f->events[i - 1].kind == TEC_EVENT_FRAME) {
            planner_ns = e->t_ns - t->f->events[i - 1].t_ns;
            break;
        }
    for (size_t i = at + 1; i < t->f->n_events && t->f->events[i].kind == TEC_FLIGHT_NOTE; i++) {
        const struct tec_flight_event *note = &t->f->events[i];
        double number;
        memcpy(&number, &note->value, sizeof number);
        bool text = !note->flag && note->more >= 0 && note->more <= TEC_FLIGHT_WORDS;
        json_object_set_new(args, t->f->words[note->what],
                            text ? json_string(t->f->words[note->more]) : json_real(number));
    }
    put(t,
        &(struct tec_tracing_event){.track = t->policy,
                                    .name = e->what ? t->f->words[e->what] : "default",
                                    .start_ns = e->t_ns - planner_ns,
                                    .end_ns = e->t_ns},
        args);
}

/* --- requests --------------------------------------------------------------------------------- */

static struct alive *find(struct trace *t, int64_t request, bool busy)
{
    for (int i = 0; i < TEC_TRACE_REQUESTS; i++)
        if (t->alive[i].busy == busy && (!busy || t->alive[i].request == request))
            return &t->alive[i];
    return NULL;
}

static void arrive(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    (void)at;
    struct alive *a = find(t, e->value, false);
    char name[32];
    if (!a)
        return;
    snprintf(name, sizeof name, "requests %d", (int)(a - t->alive));
    if (a->track == NO_TRACK)
        a->track = tec_tracing_track(t->s, name, NULL);
    *a = (struct alive){a->track, true, e->value, e->t_ns};
}

static void leave(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    struct alive *a = find(t, e->value, true);
    char name[64];
    if (!a)
        return;
    a->busy = false;
    snprintf(name, sizeof name, "request %lld", (long long)e->value);
    put(t,
        &(struct tec_tracing_event){.track = a->track,
                                    .name = name,
                                    .start_ns = a->since_ns,
                                    .end_ns = e->t_ns > a->since_ns ? e->t_ns : a->since_ns + 1,
                                    .flow = flow_of(FLOW_REQUEST, 0, e->value),
                                    .step = t->flows.of_event[at]},
        json_pack("{s:s, s:i, s:s}", "node", tec_flight_node(t->f, e->node), "tokens",
                  e->kind == TEC_EVENT_FINISH ? e->more : 0, "reason",
                  e->what ? t->f->words[e->what] : tec_recorder_kind(e->kind)));
}

/* Tokens of a request: a moment in the launch that made them. */
static void tokens(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    char name[64];
    int64_t when = e->t_ns;
    if (e->node < 0 || e->node >= t->f->n_nodes)
        return;
    for (size_t i = at; i > 0 && i + 256 > at; i--)
        if (t->f->events[i - 1].kind == TEC_EVENT_END && t->f->events[i - 1].node == e->node) {
            when = t->f->events[i - 1].value + 1;
            break;
        }
    snprintf(name, sizeof name, "request %lld: %d tokens", (long long)e->value, e->count);
    put(t,
        &(struct tec_tracing_event){.track = t->nodes[e->node],
                                    .name = name,
                                    .start_ns = when,
                                    .end_ns = when,
                                    .flow = flow_of(FLOW_REQUEST, 0, e->value),
                                    .step = t->flows.of_event[at]},
        json_pack("{s:i}", "done", e->more));
}

/* --- the walk --------------------------------------------------------------------------------- */

static void put_kv(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    (void)at;
    put(t,
        &(struct tec_tracing_event){.track = kv_track(t, e->count),
                                    .name = t->f->words[e->what],
                                    .start_ns = e->t_ns,
                                    .end_ns = e->t_ns},
        json_pack("{s:I, s:i}", "request", (json_int_t)e->value, "tokens", e->more));
}

static int track_of(const struct trace *t, const struct tec_flight_event *e)
{
    return e->node >= 0 && e->node < t->f->n_nodes ? t->nodes[e->node] : t->sessions[0];
}

static int chunk_track(struct trace *t, const struct tec_flight_event *e)
{
    char name[96];
    bool known = e->node >= 0 && e->node < t->f->n_nodes && e->session < TEC_MAX_SESSIONS;
    int *track = known ? &t->chunks[e->node][e->session] : NULL;
    if (track && *track == NO_TRACK) {
        snprintf(name, sizeof name, e->session ? "executed %.60s, session %d" : "executed %.60s",
                 t->f->nodes[e->node], (int)e->session);
        *track = tec_tracing_track(t->s, name, NULL);
    }
    return track ? *track : NO_TRACK;
}

/* Rows that fit into a time, of so many. */
static int rows_in(int64_t ns, int64_t row_ns, int most)
{
    int64_t n = row_ns > 0 && ns > 0 ? (ns + row_ns / 2) / row_ns : 0;
    return n < most ? (int)n : most;
}

/* What of a chunk is executed: rows that follow each other at the robot's rate from its observation
 * on, from when it left until the next one of its node leaves; `rows` 0: not known, or all of it
 * had passed by then. */
struct chunk {
    int rows;
    int64_t row_ns, until_ns;
};

static struct chunk chunk_of(const struct trace *t, const struct tec_flight_event *e, size_t at)
{
    const json_t *chunks = json_object_get(t->f->about, "chunks"), *one;
    const char *node = tec_flight_node(t->f, e->node), *of;
    size_t i;
    int64_t row_ns = 0, until = INT64_MAX;
    int rows = 0;
    json_array_foreach(chunks, i, one) if ((of = json_string_value(json_object_get(one, "node"))) &&
                                           strcmp(of, node) == 0)
    {
        rows = (int)json_integer_value(json_object_get(one, "rows"));
        row_ns = json_integer_value(json_object_get(one, "row_us")) * 1000;
    }
    if (rows < 1 || rows > 100000 || row_ns < 1 || row_ns > (int64_t)1e12 || e->value > e->t_ns)
        return (struct chunk){.rows = 0};
    for (i = at + 1; i < t->f->n_events && i - at < LOOK_AHEAD && until == INT64_MAX; i++) {
        const struct tec_flight_event *next = &t->f->events[i];
        if (next->kind == TEC_EVENT_RELEASE && next->node == e->node && next->session == e->session)
            until = next->t_ns;
    }
    int64_t end = e->value + rows * row_ns;
    until = until < end ? until : end;
    return (struct chunk){until > e->t_ns ? rows : 0, row_ns, until};
}

static void put_chunk(struct trace *t, const struct tec_flight_event *e, size_t at,
                      const struct chunk *c)
{
    int passed = rows_in(e->t_ns - e->value, c->row_ns, c->rows);
    int executed = rows_in(c->until_ns - e->t_ns, c->row_ns, c->rows - passed);
    char name[64];
    snprintf(name, sizeof name, "%d of %d rows of frame %d", executed, c->rows, (int)e->frame);
    put(t,
        &(struct tec_tracing_event){.track = chunk_track(t, e),
                                    .name = name,
                                    .start_ns = e->t_ns,
                                    .end_ns = c->until_ns,
                                    .flow = flow_of(FLOW_OBSERVATION, e->session, e->frame),
                                    .step = t->flows.of_event[at]},
        json_pack("{s:i, s:i, s:i}", "passed", passed, "executed", executed, "dropped",
                  c->rows - passed - executed));
}

/* The flow of its observation ends here, or with the chunk that is executed then. */
static void put_release(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    const struct chunk c = chunk_of(t, e, at);
    enum tec_flow_step step = t->flows.of_event[at];
    if (c.rows && step == TEC_FLOW_ENDS)
        step = TEC_FLOW_GOES_ON;
    put(t,
        &(struct tec_tracing_event){.track = track_of(t, e),
                                    .name = e->flag ? "actions leave late" : "actions leave",
                                    .start_ns = e->t_ns,
                                    .end_ns = e->t_ns,
                                    .flow = flow_of(FLOW_OBSERVATION, e->session, e->frame),
                                    .step = step},
        json_pack("{s:i}", "slack_us", e->more));
    if (c.rows)
        put_chunk(t, e, at, &c);
}

static void put_left_out(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    (void)at;
    put(t,
        &(struct tec_tracing_event){
            .track = track_of(t, e), .name = "left out", .start_ns = e->t_ns, .end_ns = e->t_ns},
        json_pack("{s:s}", "reason", t->f->words[e->what]));
}

/* A text becomes the newest of its stream, or is read there. */
static void put_stream(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    (void)at;
    put(t,
        &(struct tec_tracing_event){.track = track_of(t, e),
                                    .name = tec_recorder_kind(e->kind),
                                    .start_ns = e->t_ns,
                                    .end_ns = e->t_ns},
        json_pack("{s:s, s:I, s:i}", "stream", t->f->words[e->what], "request",
                  (json_int_t)e->value, "frames_old", e->more));
}

static void put_unread(struct trace *t, const struct tec_flight_event *e, size_t at)
{
    (void)at;
    put(t,
        &(struct tec_tracing_event){.track = track_of(t, e),
                                    .name = tec_recorder_kind(e->kind),
                                    .start_ns = e->t_ns,
                                    .end_ns = e->t_ns},
        json_pack("{s:s, s:I}", "stream", t->f->words[e->what], "request", (json_int_t)e->value));
}

/* Frames and launches are put whole; these are the others. */
static void (*const puts_event[TEC_FLIGHT_KINDS])(struct trace *t, const struct tec_flight_event *e,
                                                  size_t at) = {
    [TEC_EVENT_PLAN] = put_plan,        [TEC_EVENT_ARRIVE] = arrive,
    [TEC_EVENT_TOKENS] = tokens,        [TEC_EVENT_FINISH] = leave,
    [TEC_EVENT_SHED] = leave,           [TEC_EVENT_CANCEL] = leave,
    [TEC_EVENT_REFUSE] = leave,         [TEC_EVENT_KV] = put_kv,
    [TEC_EVENT_RELEASE] = put_release,  [TEC_EVENT_VERSION] = put_stream,
    [TEC_EVENT_READ] = put_stream,      [TEC_EVENT_UNREAD] = put_unread,
    [TEC_EVENT_LEFT_OUT] = put_left_out};

static void put_event(struct trace *t, size_t at)
{
    const struct tec_flight_event *e = &t->f->events[at];
    if (e->kind < TEC_FLIGHT_KINDS && puts_event[e->kind])
        puts_event[e->kind](t, e, at);
}

enum tec_status tec_tracing_of_flight(struct tec_tracing_sink *s, struct tec_flight *f,
                                      int64_t last_ns, struct tec_error *err)
{
    struct trace t = {.s = s, .f = f, .from_ns = INT64_MIN};
    if (last_ns > 0)
        t.from_ns = f->events[f->n_events - 1].t_ns - last_ns;
    TEC_TRY(tec_tracing_flows_find(&t.flows, f, t.from_ns, &f->arena, err));
    tec_tracing_begin(s);
    make_tracks(&t);
    enum tec_status status = TEC_OK;
    for (size_t i = 0; i < f->n_frames && status == TEC_OK; i++)
        status = put_frame(&t, i, err);
    for (size_t i = 0; i < f->n_launches; i++)
        put_launch(&t, &f->launches[i]);
    for (size_t i = 0; i < f->n_events; i++)
        put_event(&t, i);
    if (status == TEC_OK)
        status = tec_tracing_slots(s, f, t.from_ns, err);
    tec_tracing_finish(s);
    if (status == TEC_OK && s->text.failed)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a trace");
    return status;
}
