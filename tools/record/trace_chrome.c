/* trace_chrome.c - a trace as Chrome's Trace Event JSON, which chrome://tracing and
 * ui.perfetto.dev open: a thread for each track, microseconds. */
#include "tools/record/trace_formats.h"

#include "base/json_text.h"

#include <stdlib.h>
#include <string.h>

enum { PID = 1 };

static void put(struct tec_tracing_sink *s, json_t *event)
{
    char *text = tec_json_whole(event, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(event);
    tec_buffer_bytes(&s->text, s->any ? ",\n" : "\n", s->any ? 2 : 1);
    s->any = true;
    if (text)
        tec_buffer_bytes(&s->text, text, strlen(text));
    s->text.failed |= !text;
    free(text);
}

static double us(int64_t ns)
{
    return (double)ns / 1e3;
}

static void begin(struct tec_tracing_sink *s)
{
    static const char front[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    tec_buffer_bytes(&s->text, front, sizeof front - 1);
    put(s, json_pack("{s:s, s:s, s:i, s:{s:s}}", "ph", "M", "name", "process_name", "pid", PID,
                     "args", "name", "tectum"));
}

static void finish(struct tec_tracing_sink *s)
{
    tec_buffer_bytes(&s->text, "\n]}\n", 4);
}

static void track(struct tec_tracing_sink *s, int number, const char *name, const char *unit)
{
    if (unit)
        return; /* counters are named by their events */
    put(s, json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "ph", "M", "name", "thread_name", "pid", PID,
                     "tid", number, "args", "name", tec_json_shown(name)));
    put(s, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name", "thread_sort_index", "pid",
                     PID, "tid", number, "args", "sort_index", number));
}

static void flow(struct tec_tracing_sink *s, const struct tec_tracing_event *e)
{
    static const char *const phases[] = {"", "s", "t", "f"};
    json_t *one = json_pack("{s:s, s:s, s:s, s:I, s:i, s:i, s:f}", "ph", phases[e->step], "name",
                            "flow", "cat", "flow", "id", (json_int_t)e->flow, "pid", PID, "tid",
                            e->track, "ts", us(e->start_ns));
    if (e->step == TEC_FLOW_ENDS)
        json_object_set_new(one, "bp", json_string("e"));
    put(s, one);
}

static void event(struct tec_tracing_sink *s, const struct tec_tracing_event *e)
{
    bool moment = e->end_ns <= e->start_ns;
    json_t *one =
        json_pack("{s:s, s:o, s:i, s:i, s:f}", "ph", moment ? "i" : "X", "name",
                  tec_json_shown(e->name), "pid", PID, "tid", e->track, "ts", us(e->start_ns));
    if (moment)
        json_object_set_new(one, "s", json_string("t"));
    else
        json_object_set_new(one, "dur", json_real(us(e->end_ns - e->start_ns)));
    if (e->args)
        json_object_set_new(one, "args", json_deep_copy(e->args));
    put(s, one);
    if (e->step != TEC_FLOW_NONE)
        flow(s, e);
}

static void count(struct tec_tracing_sink *s, int number, const char *name, int64_t t_ns,
                  double value)
{
    (void)number;
    put(s, json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "ph", "C", "name", name, "pid", PID, "ts",
                     us(t_ns), "args", "value", value));
}

const struct tec_tracing_writer tec_tracing_chrome = {begin, finish, track, event, count};
