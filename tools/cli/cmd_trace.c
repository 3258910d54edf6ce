/* cmd_trace.c - the flight recorder as a trace, of a recording or of a running robot. */
#include "base/out_file.h"
#include "tools/record/flight_source.h"
#include "tools/record/trace.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct trace_options {
    const char *control, *out, *last;
    bool perfetto, chrome;
};

#define AT(member) offsetof(struct trace_options, member)
static const struct tec_option options[] = {
    {"out", 'o', TEC_OPTION_TEXT, "FILE", "the trace; without it, to standard output", AT(out), 0,
     0},
    {"perfetto", 0, TEC_OPTION_FLAG, NULL,
     "as Perfetto's protobuf, which is what is written anyway", AT(perfetto), 0, 0},
    {"chrome", 0, TEC_OPTION_FLAG, NULL, "as Chrome's JSON", AT(chrome), 0, 0},
    {"last", 0, TEC_OPTION_TEXT, "10s", "only the end of it: 10s, 500ms", AT(last), 0, 0},
    {"control", 0, TEC_OPTION_TEXT, "PATH", "the socket of a robot: serve --control, run --control",
     AT(control), 0, 0},
};

/* "10s", "500ms", "10": seconds. */
static enum tec_status read_last(double *seconds, const char *text, struct tec_error *err)
{
    char *end = NULL;
    *seconds = text ? strtod(text, &end) : 0.0;
    if (!text)
        return TEC_OK;
    bool milli = strcmp(end, "ms") == 0;
    if (end == text || (*end && !milli && strcmp(end, "s") != 0) ||
        !(*seconds > 0.0 && *seconds < 1e6))
        return tec_fail(err, TEC_INVALID, "--last: '%.40s' is no time like 10s or 500ms", text);
    *seconds = milli ? *seconds / 1e3 : *seconds;
    return TEC_OK;
}

static enum tec_status write(struct tec_invocation *call, const struct tec_buffer *text,
                             struct tec_error *err)
{
    const struct trace_options *o = call->options;
    if (o->out)
        return tec_context(err, tec_outfile_file_write(o->out, text->data, text->n, err), "--out");
    fwrite(text->data, 1, text->n, call->out); /* the caller checks the stream for errors */
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct trace_options *o = call->options;
    struct tec_flight f;
    double last = 0.0;
    if (o->perfetto && o->chrome)
        return tec_fail(err, TEC_INVALID, "--perfetto and --chrome: one of them");
    TEC_TRY(read_last(&last, o->last, err));
    TEC_TRY(tec_flight_of_call(&f, call, o->control, last, err));
    struct tec_tracing_sink sink = {.format = o->chrome ? TEC_TRACING_CHROME : TEC_TRACING_PERFETTO,
                                    .text = {.heap = call->heap}};
    enum tec_status status = tec_tracing_of_flight(&sink, &f, (int64_t)(last * 1e9), err);
    if (status == TEC_OK)
        status = write(call, &sink.text, err);
    tec_buffer_finish(&sink.text);
    tec_flight_close(&f);
    return status;
}

const struct tec_command tec_command_trace = {
    .usage = "trace [options] [FILE.mcap]",
    .about =
        "FILE.mcap is a recording (run --record, serve --record), or a dump of the flight "
        "recorder\n"
        "that every run keeps; of a running robot --control gets it. ui.perfetto.dev opens both\n"
        "formats: a track each for frames, the policy, nodes, streams, requests and memory,\n"
        "counters of slack, age and tokens, and flows from an observation to its actions.\n",
    .example = "  tectum trace robot.mcap -o robot.pftrace\n"
               "  tectum trace --control /tmp/robot.sock --last 10s --chrome -o last.json\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct trace_options),
    .max_args = 1,
    .args = "a recording",
    .offers = "FILE.mcap",
    .run = run,
};
