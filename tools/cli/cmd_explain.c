/* cmd_explain.c - why a frame was late: from a recording, or from a running robot; and why a
 * pipeline's captures are there. */
#include "base/json_text.h"
#include "base/store/kind.h"
#include "tools/cli/open_pipeline.h"
#include "tools/measure/measure.h"
#include "tools/picture/captures.h"
#include "tools/picture/drawing.h"
#include "tools/record/explain.h"
#include "tools/record/flight_source.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct explain_options {
    const char *control, *frame, *miss;
    bool memory, graphs;
};

#define AT(member) offsetof(struct explain_options, member)
static const struct tec_option options[] = {
    {"frame", 0, TEC_OPTION_TEXT, "N", "that frame: what ran, next to what is usual", AT(frame), 0,
     0},
    {"miss", 0, TEC_OPTION_TEXT, "N", "why the frame of this number missed", AT(miss), 0, 0},
    {"memory", 0, TEC_OPTION_FLAG, NULL, "what takes how many bytes, of a pipeline", AT(memory), 0,
     0},
    {"graphs", 0, TEC_OPTION_FLAG, NULL, "why each capture is there, as `explain captures` has it",
     AT(graphs), 0, 0},
    {"control", 0, TEC_OPTION_TEXT, "PATH", "the socket of a robot: serve --control, run --control",
     AT(control), 0, 0},
};

/* Numbers have gaps: a tick that finds a frame unfinished uses up its number. */
static enum tec_status not_there(const struct tec_flight *f, long long number,
                                 struct tec_error *err)
{
    size_t n = f->n_frames, next = 0;
    while (next < n && f->frames[next].frame < number)
        next++;
    if (n == 0)
        return tec_fail(err, TEC_NOT_FOUND, "frame %lld is not in it: there are none", number);
    if (next > 0 && next < n)
        return tec_fail(err, TEC_NOT_FOUND,
                        "frame %lld is not in it: that tick opened none; the nearest are %lld "
                        "before it and %lld behind it",
                        number, (long long)f->frames[next - 1].frame,
                        (long long)f->frames[next].frame);
    return tec_fail(err, TEC_NOT_FOUND, "frame %lld is not in it: there are %zu, from %lld to %lld",
                    number, n, (long long)f->frames[0].frame, (long long)f->frames[n - 1].frame);
}

static enum tec_status find(const struct tec_flight_frame **out, const struct tec_flight *f,
                            const char *option, const char *text, struct tec_error *err)
{
    char *end = NULL;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || number < 0)
        return tec_fail(err, TEC_INVALID, "--%s: '%.40s' is not the number of a frame", option,
                        text);
    *out = tec_flight_find(f, number);
    if (*out)
        return TEC_OK;
    return not_there(f, number, err);
}

/* Name the misses that there are, for someone who asked about another frame. */
static enum tec_status no_miss(const struct tec_flight *f, const struct tec_flight_frame *frame,
                               struct tec_error *err)
{
    char list[160] = "";
    size_t n = 0;
    for (size_t i = 0; i < f->n_frames && n + 24 < sizeof list; i++)
        if (f->frames[i].missed)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%lld", n ? ", " : "",
                                  (long long)f->frames[i].frame);
    return tec_fail(err, TEC_NOT_FOUND, "frame %lld did not miss; %s%s", (long long)frame->frame,
                    n ? "these did: " : "none did", list);
}

static enum tec_status tell(struct tec_invocation *call, struct tec_flight *f,
                            struct tec_error *err)
{
    const struct explain_options *o = call->options;
    const struct tec_flight_frame *frame = NULL;
    json_t *json = NULL;
    if (o->frame || o->miss)
        TEC_TRY(find(&frame, f, o->miss ? "miss" : "frame", o->miss ? o->miss : o->frame, err));
    if (frame && o->miss && !frame->missed)
        return no_miss(f, frame, err);
    if (call->shared.format == TEC_FORMAT_TEXT)
        return frame ? tec_explain_frame_text(call->out, f, frame, err)
                     : tec_explain_all_text(call->out, f, err);
    TEC_TRY(frame ? tec_explain_frame_json(&json, f, frame, err)
                  : tec_explain_all_json(&json, f, err));
    enum tec_status status = tec_json_print(call->out, json, JSON_COMPACT | JSON_REAL_PRECISION(9),
                                            "an explanation", err);
    json_decref(json);
    return status;
}

static enum tec_status print_captures(struct tec_invocation *call, const struct tec_engine *engine,
                                      struct tec_error *err)
{
    json_t *json = NULL;
    if (call->shared.format == TEC_FORMAT_TEXT)
        return tec_captures_text(engine, call->arena, call->out, err);
    TEC_TRY(tec_captures_json(&json, engine, call->arena, err));
    enum tec_status status = tec_json_print(call->out, json, JSON_COMPACT, "captures", err);
    json_decref(json);
    return status;
}

static enum tec_status print_memory(struct tec_invocation *call,
                                    const struct tec_pipeline *pipeline, struct tec_error *err)
{
    struct tec_drawing drawing;
    struct tec_measured measured;
    enum tec_measured_by by;
    TEC_TRY(tec_drawing_make(&drawing, pipeline, call->arena, err));
    TEC_TRY(tec_measure(&measured, &by, call, pipeline, NULL, err));
    drawing.measured = &measured;
    if (call->shared.format == TEC_FORMAT_TEXT) {
        tec_graph_text(&drawing, call->out);
        return TEC_OK;
    }
    json_t *json = tec_graph_compiled_json(&measured);
    json_object_set_new(json, "pipeline", json_string(pipeline->name));
    enum tec_status status = tec_json_print(call->out, json, JSON_COMPACT, "the memory", err);
    json_decref(json);
    return status;
}

static enum tec_status print_graphs(struct tec_invocation *call,
                                    const struct tec_pipeline *pipeline, struct tec_error *err)
{
    struct tec_engine *engine = NULL;
    enum tec_measured_by by;
    enum tec_status status = tec_measure_plan(&engine, &by, call, pipeline, false, err);
    if (status == TEC_OK)
        status = print_captures(call, engine, err);
    tec_engine_close(engine);
    return status;
}

/* Of a pipeline file, with nothing behind the addresses of its captures. */
static enum tec_status explain_file(struct tec_invocation *call, const char *path,
                                    struct tec_error *err)
{
    const struct explain_options *o = call->options;
    struct tec_pipeline *pipeline = NULL;
    if (o->frame || o->miss || (o->memory && o->graphs))
        return tec_fail(err, TEC_INVALID,
                        "one of --frame, --miss, --memory, --graphs and captures");
    TEC_TRY(tec_cli_open_pipeline(&pipeline, call, path, false, err));
    enum tec_status status =
        o->memory ? print_memory(call, pipeline, err) : print_graphs(call, pipeline, err);
    tec_pipeline_free(pipeline);
    return status;
}

/* Of the pipeline that a recording or a running robot names. */
static enum tec_status explain_recorded(struct tec_invocation *call, struct tec_error *err)
{
    const struct explain_options *o = call->options;
    const char *given = call->args.n ? call->args.item[0] : NULL;
    struct tec_flight f;
    if (given && tec_path_kind(given) != TEC_PATH_RECORDING)
        return explain_file(call, given, err);
    TEC_TRY(tec_flight_of_call(&f, call, o->control, 0.0, err));
    const char *of = json_string_value(json_object_get(f.about, "path"));
    const char *path = of ? tec_arena_strdup(call->arena, of) : NULL;
    tec_flight_close(&f);
    return path ? explain_file(call, path, err)
                : tec_fail(err, TEC_NOT_FOUND,
                           "it does not say of which pipeline it is: give the pipeline's file");
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct explain_options *o = call->options;
    struct tec_flight f;
    bool captures = call->args.n > 0 && strcmp(call->args.item[0], "captures") == 0;
    if (captures && call->args.n == 1)
        return tec_fail(err, TEC_INVALID, "captures: a pipeline file is missing: tectum %s",
                        tec_command_explain.usage);
    if (captures && (o->control || o->memory || o->graphs))
        return tec_fail(err, TEC_INVALID, "captures takes a pipeline file and no option of frames");
    if (captures)
        return explain_file(call, call->args.item[1], err);
    if (call->args.n == 2)
        return tec_fail(err, TEC_INVALID, "'%.60s' is not the word captures: tectum %s",
                        call->args.item[0], tec_command_explain.usage);
    if (o->frame && o->miss)
        return tec_fail(err, TEC_INVALID, "--frame and --miss: one of them");
    if (o->memory || o->graphs)
        return explain_recorded(call, err);
    TEC_TRY(tec_flight_of_call(&f, call, o->control, 0.0, err));
    enum tec_status status = tell(call, &f, err);
    tec_flight_close(&f);
    return status;
}

const struct tec_command tec_command_explain = {
    .usage =
        "explain [options] [FILE.mcap] | explain captures FILE | explain --memory|--graphs FILE",
    .about =
        "FILE.mcap is a recording (run --record, serve --record), or a dump of the flight "
        "recorder\n"
        "that every run keeps. Without --frame and --miss: how many frames missed, and why each\n"
        "did. JSON of a frame: {frame, session, cause, node, us_over, words, notes, missed, "
        "policy,\n"
        "policy_us, host_us, frame_us, deadline_us, slack_us, age_us, late_us, refused "
        "[{request,\n"
        "node, reason}], left_out [{node, reason}], launches [{node, rows, padded, k, start_us,\n"
        "us, p50_us, p99_us}]}; of all: {frames, missed, skipped, left_out, causes,\n"
        "misses [{frame, cause, node, us_over, words, notes}]}; skipped: ticks of a paced run "
        "that\n"
        "opened no frame.\n"
        "captures FILE, or --graphs: of a pipeline, why each capture is there; the options of "
        "model\n"
        "and device are for it. JSON: {pipeline, captures [{part, nodes, why, file, line, "
        "commands,\n"
        "activations, slices}]}. --memory: what takes how many bytes. JSON: {pipeline, parts "
        "[{part,\n"
        "commands, barriers, activations}], bytes {total, weights, kv, ...}}. Both take a "
        "pipeline's\n"
        "file, and of a recording or a running robot the one that it names.\n",
    .example = "  tectum explain robot.mcap --miss 18240\n"
               "  tectum explain --control /tmp/robot.sock\n"
               "  tectum explain captures pipelines/demo_metaworld.lua\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_SET | TEC_TAKES_MODEL | TEC_TAKES_PLANNED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct explain_options),
    .max_args = 2,
    .args = "a recording, or captures and a pipeline file",
    .offers = "PIPELINE|FILE.mcap",
    .run = run,
};
