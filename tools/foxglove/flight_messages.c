/* flight_messages.c - what the flight recorder has kept since it was asked last, as messages:
 * frames, deadlines, operations on keys and values. */
#include "tools/foxglove/foxglove_own.h"

#include "base/json_text.h"
#include "tools/record/explain.h"

#include <stdio.h>
#include <string.h>

/* The newest events alone: what is usual is found in them, so that the cause of a miss can be said.
 * SETTLED: the numbers of a frame's record follow its end. */
enum { EVENTS = 1 << 13, EVERY_NS = 50000000, SETTLED_NS = 2000000 };

static json_t *ms(int64_t ns)
{
    return json_real((double)ns / 1e6);
}

static void tell_miss(struct tec_foxglove *f, struct tec_flight *flight,
                      const struct tec_flight_frame *frame, json_t *one)
{
    struct tec_miss miss;
    struct tec_error err;
    if (tec_explain_miss(&miss, flight, frame, &err) != TEC_OK)
        return;
    json_object_set_new(one, "over_ms", json_real((double)miss.us_over / 1e3));
    json_object_set_new(one, "node", tec_json_shown(miss.node));
    json_object_set_new(one, "words", tec_json_shown(miss.words));
    if (tec_foxglove_wants(f, TEC_FOXGLOVE_LOG))
        tec_foxglove_log(f, frame->end_ns, true, miss.cause, miss.words);
}

/* Actions that the policy left out of the frame: their nodes, "act, look", and a line of the log
 * for each. */
static void tell_left_out(struct tec_foxglove *f, const struct tec_flight *flight,
                          const struct tec_flight_frame *frame, json_t *one)
{
    json_t *all = tec_flight_left_out(flight, frame), *out;
    char nodes[512] = "", words[160];
    size_t i, n = 0;
    json_array_foreach(all, i, out)
    {
        const char *node = json_string_value(json_object_get(out, "node"));
        const char *reason = json_string_value(json_object_get(out, "reason"));
        n += n < sizeof nodes ? (size_t)snprintf(nodes + n, sizeof nodes - n, "%s%s", i ? ", " : "",
                                                 node ? node : "")
                              : 0;
        snprintf(words, sizeof words, "'%.80s' is left out: %.60s", node ? node : "",
                 reason ? reason : "");
        if (tec_foxglove_wants(f, TEC_FOXGLOVE_LOG))
            tec_foxglove_log(f, frame->end_ns, false, "left out", words);
    }
    if (i > 0)
        json_object_set_new(one, "left_out", tec_json_shown(nodes));
    json_decref(all);
}

static void tell_frame(struct tec_foxglove *f, struct tec_flight *flight,
                       const struct tec_flight_frame *frame)
{
    json_t *one = json_pack(
        "{s:I, s:i, s:b, s:s, s:o, s:o, s:o, s:f, s:f, s:i, s:i, s:i, s:i}", "frame",
        (json_int_t)frame->frame, "session", frame->session, "missed", (int)frame->missed, "cause",
        frame->cause, "took_ms", ms(frame->end_ns - frame->start_ns), "inputs_late_ms",
        ms(frame->late_ns), "policy", tec_json_shown(tec_flight_policy(flight, frame)), "policy_ms",
        (double)frame->planner_us / 1e3, "host_ms", (double)frame->host_us / 1e3, "tokens",
        frame->tokens, "rows", frame->rows, "in_flight", frame->in_flight, "snapped",
        frame->snapped);
    if (frame->deadline_us >= 0)
        json_object_set_new(one, "deadline_ms", json_real((double)frame->deadline_us / 1e3));
    if (frame->age_us >= 0)
        json_object_set_new(one, "age_ms", json_real((double)frame->age_us / 1e3));
    if (frame->deadline_us >= 0 && frame->age_us >= 0)
        json_object_set_new(one, "slack_ms", json_real((double)frame->slack_us / 1e3));
    if (frame->missed)
        tell_miss(f, flight, frame, one);
    tell_left_out(f, flight, frame, one);
    tec_foxglove_publish(f, TEC_FOXGLOVE_FRAMES, frame->end_ns, one);
}

/* Of each of a frame's chunks: how long it took from the tick on, and what was left of its time. */
static void tell_deadlines(struct tec_foxglove *f, const struct tec_flight *flight,
                           const struct tec_flight_frame *frame)
{
    for (size_t i = frame->first; i <= frame->last && i < flight->n_events; i++) {
        const struct tec_flight_event *e = &flight->events[i];
        if (e->kind != TEC_EVENT_RELEASE || e->session != frame->session)
            continue;
        json_t *one =
            json_pack("{s:I, s:i, s:o, s:b, s:o}", "frame", (json_int_t)frame->frame, "session",
                      frame->session, "node", tec_json_shown(tec_flight_node(flight, e->node)),
                      "late", (int)e->flag, "took_ms", ms(e->t_ns - e->value));
        if (frame->deadline_us >= 0) {
            json_object_set_new(one, "deadline_ms", json_real((double)frame->deadline_us / 1e3));
            json_object_set_new(one, "slack_ms", json_real((double)e->more / 1e3));
        }
        tec_foxglove_publish(f, TEC_FOXGLOVE_DEADLINES, e->t_ns, one);
    }
}

static void tell_frames(struct tec_foxglove *f, struct tec_flight *flight, int64_t now_ns)
{
    int64_t newest = f->frames_ns;
    bool frames = tec_foxglove_wants(f, TEC_FOXGLOVE_FRAMES),
         log = tec_foxglove_wants(f, TEC_FOXGLOVE_LOG);
    for (size_t i = 0; i < flight->n_frames; i++) {
        const struct tec_flight_frame *frame = &flight->frames[i];
        if (frame->end_ns <= f->frames_ns || frame->end_ns > now_ns - SETTLED_NS)
            continue;
        newest = frame->end_ns > newest ? frame->end_ns : newest;
        if (frames || log)
            tell_frame(f, flight, frame);
        if (tec_foxglove_wants(f, TEC_FOXGLOVE_DEADLINES))
            tell_deadlines(f, flight, frame);
    }
    f->frames_ns = newest;
}

static void tell_kv(struct tec_foxglove *f, const struct tec_flight *flight)
{
    uint64_t end = flight->first_event + flight->n_events;
    uint64_t from = f->events > flight->first_event ? f->events - flight->first_event : 0;
    for (size_t i = from; i < flight->n_events && tec_foxglove_wants(f, TEC_FOXGLOVE_KV); i++) {
        const struct tec_flight_event *e = &flight->events[i];
        if (e->kind != TEC_EVENT_KV)
            continue;
        json_t *one = json_pack("{s:i, s:i, s:s, s:s, s:i}", "frame", e->frame, "session",
                                e->session, "operation", flight->words[e->what], "of",
                                flight->words[e->count], "tokens", e->more);
        if (e->node >= 0)
            json_object_set_new(one, "node", tec_json_shown(tec_flight_node(flight, e->node)));
        if (e->value >= 0)
            json_object_set_new(one, "request", json_integer(e->value));
        tec_foxglove_publish(f, TEC_FOXGLOVE_KV, e->t_ns, one);
    }
    f->events = end > f->events ? end : f->events;
}

void tec_foxglove_tell_flight(struct tec_foxglove *f, int64_t now_ns)
{
    static const enum tec_foxglove_channel ours[] = {TEC_FOXGLOVE_FRAMES, TEC_FOXGLOVE_DEADLINES,
                                                     TEC_FOXGLOVE_KV, TEC_FOXGLOVE_LOG};
    struct tec_flight flight;
    struct tec_error err;
    bool wanted = false;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        wanted |= tec_foxglove_wants(f, (int)ours[i]);
    if (!wanted || now_ns - f->flight_ns < EVERY_NS)
        return;
    f->flight_ns = now_ns;
    if (tec_flight_newest(&flight, f->o.recorder, f->about, EVENTS, f->heap, &err) != TEC_OK)
        return; /* there is no memory now; later there may be */
    tell_frames(f, &flight, now_ns);
    tell_kv(f, &flight);
    tec_flight_close(&flight);
}
