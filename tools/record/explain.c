/* explain.c - finds why a frame was late: the launch, the policy, the host or the input that took
 * longer than it usually does, or the plan that put too much into the frame. */
#include "tools/record/explain.h"

#include "base/json_text.h"
#include "graph/run/loop/loop.h"

#include <string.h>

const struct tec_flight_frame *tec_flight_find(const struct tec_flight *f, int64_t number)
{
    for (size_t i = f->n_frames; i > 0; i--)
        if (f->frames[i - 1].frame == number)
            return &f->frames[i - 1];
    return NULL;
}

const char *tec_flight_policy(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++)
        if (f->events[i].kind == TEC_EVENT_PLAN && f->events[i].what)
            return f->words[f->events[i].what];
    return "default";
}

/* --- the causes, each with its words ---------------------------------------------------------- */

static double ms(int64_t us)
{
    return (double)us / 1e3;
}

/* The launch that took the most beyond its median, of this frame and of frames that ran since its
 * tick. */
static const struct tec_flight_launch *
slowest(const struct tec_flight *f, const struct tec_flight_frame *frame, int64_t *over_us)
{
    const struct tec_flight_launch *worst = NULL;
    *over_us = INT64_MIN;
    for (size_t i = tec_flight_since(f, frame); i < f->n_launches; i++) {
        const struct tec_flight_launch *l = &f->launches[i];
        if (l->start_ns >= frame->end_ns)
            break;
        int64_t over = (l->end_ns - l->start_ns) / 1000 - tec_flight_usual(f, l)->p50_us;
        if (over <= *over_us)
            continue;
        *over_us = over;
        worst = l;
    }
    return worst;
}

static const char *of_device(struct tec_flight *f, const struct tec_flight_frame *frame,
                             struct tec_miss *miss)
{
    int64_t over = 0;
    const struct tec_flight_launch *l = slowest(f, frame, &over);
    if (!l)
        return tec_arena_strdup(&f->arena, "the device made nothing in this frame");
    const struct tec_usual *usual = tec_flight_usual(f, l);
    miss->node = tec_flight_node(f, l->node);
    return tec_arena_printf(&f->arena,
                            "the device: '%s' took %.2f ms, %.2f ms more than its median of %.2f "
                            "ms (%zu launches like it, p99 %.2f ms)",
                            miss->node, ms((l->end_ns - l->start_ns) / 1000), ms(over),
                            ms(usual->p50_us), usual->n, ms(usual->p99_us));
}

static const char *of_policy(struct tec_flight *f, const struct tec_flight_frame *frame,
                             struct tec_miss *miss)
{
    const struct tec_flight_frame *slow = frame;
    char when[64] = "";
    (void)miss;
    for (const struct tec_flight_frame *at = frame;
         at > f->frames && at[-1].end_ns > frame->tick_ns;)
        slow = (--at)->planner_us > slow->planner_us ? at : slow;
    if (slow != frame)
        snprintf(when, sizeof when, " in frame %lld, which this one waited for",
                 (long long)slow->frame);
    return tec_arena_printf(
        &f->arena, "the policy '%s' took %.2f ms to decide%s; its median is %.2f ms",
        tec_flight_policy(f, slow), ms(slow->planner_us), when, ms(f->usual_planner_us));
}

static const char *of_host(struct tec_flight *f, const struct tec_flight_frame *frame,
                           struct tec_miss *miss)
{
    (void)miss;
    if (frame->stood_us > frame->host_us)
        return tec_arena_printf(&f->arena,
                                "the host: the program stood still for %.2f ms of its launches: "
                                "it was stopped, or other programs had the processors",
                                ms(frame->stood_us));
    return tec_arena_printf(
        &f->arena,
        "the host: %.2f ms went to neither launches nor the policy (median %.2f ms), and the frame "
        "began %.2f ms after its tick",
        ms(frame->host_us - frame->planner_us), ms(f->usual_host_us),
        ms((frame->start_ns - frame->tick_ns) / 1000));
}

static const char *of_memory(struct tec_flight *f, const struct tec_flight_frame *frame,
                             struct tec_miss *miss)
{
    int64_t over = 0;
    const struct tec_flight_launch *l = slowest(f, frame, &over);
    miss->node = l ? tec_flight_node(f, l->node) : "";
    return tec_arena_printf(&f->arena,
                            "the memory: '%s' waited %.2f ms for keys and values to be loaded",
                            miss->node, ms(frame->waited_us));
}

static const char *of_input(struct tec_flight *f, const struct tec_flight_frame *frame,
                            struct tec_miss *miss)
{
    (void)miss;
    return frame->late_ns > 0
               ? tec_arena_printf(&f->arena, "the inputs came %.2f ms after the tick",
                                  ms(frame->late_ns / 1000))
               : tec_arena_strdup(&f->arena, "there was no observation for this frame");
}

/* Launches since a frame's tick, by node; `usual_us`: the medians of launches like them. */
struct sums {
    int64_t us[TEC_MAX_NODES], all_us, usual_us;
    int launches[TEC_MAX_NODES], most; /* most: the node with the most of it */
};

static void sum_launches(struct sums *s, const struct tec_flight *f,
                         const struct tec_flight_frame *frame)
{
    *s = (struct sums){.most = 0};
    for (size_t i = tec_flight_since(f, frame); i < f->n_launches; i++) {
        const struct tec_flight_launch *l = &f->launches[i];
        if (l->start_ns >= frame->end_ns)
            break;
        if (l->node < 0 || l->node >= f->n_nodes || l->start_ns < frame->tick_ns)
            continue;
        s->us[l->node] += (l->end_ns - l->start_ns) / 1000;
        s->all_us += (l->end_ns - l->start_ns) / 1000;
        s->usual_us += tec_flight_usual(f, l)->p50_us;
        s->launches[l->node]++;
        s->most = s->us[l->node] > s->us[s->most] ? l->node : s->most;
    }
}

static const char *of_plan(struct tec_flight *f, const struct tec_flight_frame *frame,
                           struct tec_miss *miss)
{
    struct sums s;
    sum_launches(&s, f, frame);
    int64_t more = s.all_us - s.usual_us;
    char usual[80] = "about as long as usual";
    if (more > s.all_us / 5)
        snprintf(usual, sizeof usual, "%.2f ms of it more than usual", ms(more));
    miss->node = s.us[s.most] ? tec_flight_node(f, s.most) : "";
    return tec_arena_printf(
        &f->arena,
        "the plan: %.2f ms of launches since the tick, %s, do not fit; '%s' has "
        "%.2f ms of them in %d launch%s",
        ms(s.all_us), usual, miss->node, ms(s.us[s.most]), s.launches[s.most],
        s.launches[s.most] == 1 ? "" : "es");
}

static const char *of_other(struct tec_flight *f, const struct tec_flight_frame *frame,
                            struct tec_miss *miss)
{
    static const char *const meanings[] = {
#define CAUSE(name, word, meaning) meaning,
#include "graph/run/launch/causes.def"
#undef CAUSE
    };
    (void)miss;
    for (int i = 0; i < TEC_CAUSES; i++)
        if (strcmp(tec_cause_name((enum tec_cause)i), frame->cause) == 0)
            return tec_arena_strdup(&f->arena, meanings[i]);
    return tec_arena_strdup(&f->arena, "the recording does not say why");
}

static const struct {
    const char *cause;
    const char *(*words)(struct tec_flight *f, const struct tec_flight_frame *frame,
                         struct tec_miss *miss);
} explanations[] = {{"gpu", of_device},  {"policy", of_policy}, {"host", of_host},
                    {"input", of_input}, {"memory", of_memory}, {"plan", of_plan},
                    {NULL, of_other}};

enum tec_status tec_explain_miss(struct tec_miss *out, struct tec_flight *f,
                                 const struct tec_flight_frame *frame, struct tec_error *err)
{
    size_t i = 0;
    *out = (struct tec_miss){.cause = frame->cause, .node = "", .us_over = frame->overrun_us};
    while (explanations[i].cause && strcmp(explanations[i].cause, frame->cause) != 0)
        i++;
    out->words = explanations[i].words(f, frame, out);
    return out->words ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for an explanation");
}

json_t *tec_flight_refused(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *all = json_array();
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (e->kind == TEC_EVENT_REFUSE && e->session == frame->session)
            json_array_append_new(all,
                                  json_pack("{s:I, s:o, s:o}", "request", (json_int_t)e->value,
                                            "node", tec_json_shown(tec_flight_node(f, e->node)),
                                            "reason", tec_json_shown(f->words[e->what])));
    }
    return all;
}

json_t *tec_flight_left_out(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *all = json_array();
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (e->kind == TEC_EVENT_LEFT_OUT && e->session == frame->session)
            json_array_append_new(all, json_pack("{s:o, s:o}", "node",
                                                 tec_json_shown(tec_flight_node(f, e->node)),
                                                 "reason", tec_json_shown(f->words[e->what])));
    }
    return all;
}

static const char *const decided[] = {[TEC_DECIDED_DECODE] = "decode",
                                      [TEC_DECIDED_PAUSE] = "pause",
                                      [TEC_DECIDED_SHED] = "shed",
                                      [TEC_DECIDED_NODE] = "node",
                                      [TEC_DECIDED_SKIP] = "skip"};

/* "oxygen.lua:31"; "" where the file is not known. A new reference. */
static json_t *place_json(const char *file, int line)
{
    char place[80] = "";
    if (file[0] && line > 0)
        snprintf(place, sizeof place, "%.60s:%d", file, line);
    return tec_json_shown(place);
}

json_t *tec_flight_decisions(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *all = json_array();
    const char *file = "";
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (e->kind != TEC_FLIGHT_DECIDED || e->session != frame->session ||
            e->flag > TEC_DECIDED_SKIP)
            continue;
        file = f->words[e->what];
        json_array_append_new(all,
                              json_pack("{s:s, s:o, s:I, s:i, s:i, s:o}", "what", decided[e->flag],
                                        "node", tec_json_shown(tec_flight_node(f, e->node)),
                                        "request", (json_int_t)e->value, "requests", e->lane, "k",
                                        e->count, "at", place_json(file, e->more)));
    }
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        if (e->kind == TEC_FLIGHT_NOTE && e->session == frame->session && e->node > 0)
            json_array_append_new(all, json_pack("{s:s, s:o, s:o}", "what", "note", "note",
                                                 tec_json_shown(f->words[e->what]), "at",
                                                 place_json(file, e->node)));
    }
    return all;
}

json_t *tec_flight_notes(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    json_t *notes = json_object();
    for (size_t i = frame->first; i <= frame->last && i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        double number;
        if (e->kind != TEC_FLIGHT_NOTE || e->session != frame->session)
            continue;
        memcpy(&number, &e->value, sizeof number);
        bool text = !e->flag && e->more >= 0 && e->more <= TEC_FLIGHT_WORDS;
        json_object_set_new(notes, f->words[e->what],
                            text ? json_string(f->words[e->more]) : json_real(number));
    }
    return notes;
}
