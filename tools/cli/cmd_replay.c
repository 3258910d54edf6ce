/* cmd_replay.c - a recording run again, byte for byte, or under another policy. */
#include "base/json_text.h"
#include "base/out_file.h"
#include "tools/record/flight_source.h"
#include "tools/record/replay.h"
#include "tools/record/replay_sim.h"
#include "tools/record/ros2.h"
#include "tools/record/view_page.h"

#include <math.h>
#include <stddef.h>

struct replay_options {
    double speed, every_ms;
    const char *html, *ros2, *joints;
    bool diff, sim, empty;
};

#define AT(member) offsetof(struct replay_options, member)
static const struct tec_option options[] = {
    {"diff", 0, TEC_OPTION_FLAG, NULL,
     "a JSON line for every frame whose plan or actions differ: what was, what is", AT(diff), 0, 0},
    {"empty-memories", 0, TEC_OPTION_FLAG, NULL,
     "memories begin empty, not with what they held when the recording began", AT(empty), 0, 0},
    {"every", 0, TEC_OPTION_NUMBER, "MS",
     "with --sim, of a server: its observations come so, whatever its client did", AT(every_ms), 0,
     1e6},
    {"html", 0, TEC_OPTION_TEXT, "FILE",
     "the recording's frames as one page to look at, and nothing is run; with --diff what was and "
     "is",
     AT(html), 0, 0},
    {"joints", 0, TEC_OPTION_TEXT, "A,B,...",
     "with --ros2: the names of an action's columns, and of a state of as many numbers", AT(joints),
     0, 0},
    {"ros2", 0, TEC_OPTION_TEXT, "FOLDER",
     "the recording as a bag of ROS 2, a new folder; nothing is run", AT(ros2), 0, 0},
    {"sim", 0, TEC_OPTION_FLAG, NULL,
     "the recorded arrivals on a virtual clock, without the model: what would be decided, and when",
     AT(sim), 0, 0},
    {"speed", 0, TEC_OPTION_NUMBER, "X",
     "times as fast as it was recorded; 0, as fast as it can, is what happens anyway", AT(speed), 0,
     1000},
};

static void tell_stops(FILE *out, const struct tec_replay_counts *c)
{
    if (c->stops == 0)
        return;
    fprintf(
        out, "stops    %lld, the first %.2f s %s the first frame; %lld reset%s, at the end %s\n",
        (long long)c->stops, fabs(c->first_stop_s), c->first_stop_s < 0.0 ? "before" : "after",
        (long long)c->resets, c->resets == 1 ? "" : "s", c->stopped ? "stopped" : "not stopped");
}

/* {number, causes {CAUSE: n}} of misses that no frame was run for. */
static json_t *not_begun_json(const struct tec_replay_counts *c)
{
    json_t *causes = json_object();
    int64_t sum = 0;
    for (int i = 0; i < TEC_CAUSES; i++) {
        sum += c->not_begun[i];
        if (c->not_begun[i])
            json_object_set_new(causes, tec_cause_name((enum tec_cause)i),
                                json_integer(c->not_begun[i]));
    }
    return json_pack("{s:I, s:o}", "number", (json_int_t)sum, "causes", causes);
}

static void tell_not_begun(FILE *out, const struct tec_replay_counts *c)
{
    int64_t sum = 0;
    for (int i = 0; i < TEC_CAUSES; i++)
        sum += c->not_begun[i];
    if (sum == 0)
        return;
    fprintf(out, "missed   %lld before a frame began for them:", (long long)sum);
    const char *comma = "";
    for (int i = 0; i < TEC_CAUSES; i++)
        if (c->not_begun[i]) {
            fprintf(out, "%s %s %lld", comma, tec_cause_name((enum tec_cause)i),
                    (long long)c->not_begun[i]);
            comma = ",";
        }
    fputc('\n', out);
}

static enum tec_status tell(struct tec_invocation *call, const struct tec_replay_counts *c,
                            struct tec_error *err)
{
    double speed = c->seconds > 0.0 ? c->recorded_s / c->seconds : 0.0;
    if (call->shared.format == TEC_FORMAT_TEXT) {
        fprintf(call->out,
                "%lld frames in %.2f s, %.1f times as fast as recorded\n"
                "actions  %lld equal, %lld differ, %lld on one side alone\n"
                "texts    %lld equal, %lld differ, %lld not ended on both sides\n"
                "plans    %lld equal, %lld differ\n"
                "decided  %lld as recorded, %lld by the policy\n",
                (long long)c->frames, c->seconds, speed, (long long)c->chunks_equal,
                (long long)c->chunks_differ, (long long)c->chunks_missing,
                (long long)c->texts_equal, (long long)c->texts_differ, (long long)c->texts_partial,
                (long long)c->plans_equal, (long long)c->plans_differ, (long long)c->followed,
                (long long)c->by_policy);
        tell_stops(call->out, c);
        tell_not_begun(call->out, c);
        return TEC_OK;
    }
    json_t *json = json_pack(
        "{s:I, s:f, s:f, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I}, s:{s:I, s:I}, s:{s:I, s:I}, s:{s:I, "
        "s:I, s:b}}",
        "frames", (json_int_t)c->frames, "seconds", c->seconds, "speed", speed, "actions", "equal",
        (json_int_t)c->chunks_equal, "differ", (json_int_t)c->chunks_differ, "missing",
        (json_int_t)c->chunks_missing, "texts", "equal", (json_int_t)c->texts_equal, "differ",
        (json_int_t)c->texts_differ, "partial", (json_int_t)c->texts_partial, "plans", "equal",
        (json_int_t)c->plans_equal, "differ", (json_int_t)c->plans_differ, "decided", "recorded",
        (json_int_t)c->followed, "policy", (json_int_t)c->by_policy, "stops", "number",
        (json_int_t)c->stops, "resets", (json_int_t)c->resets, "stopped", (int)c->stopped);
    json_object_set_new(json, "not_begun", not_begun_json(c));
    if (c->stops)
        json_object_set_new(json_object_get(json, "stops"), "first_s", json_real(c->first_stop_s));
    enum tec_status status = tec_json_print(call->out, json, JSON_COMPACT | JSON_REAL_PRECISION(6),
                                            "the outcome of a replay", err);
    json_decref(json);
    return status;
}

static enum tec_status write_page(struct tec_invocation *call, const char *path,
                                  struct tec_error *err)
{
    struct tec_buffer data = {.heap = call->heap}, page = {.heap = call->heap};
    struct tec_flight f;
    TEC_TRY(tec_flight_of_call(&f, call, NULL, 0.0, err));
    const char *name = json_string_value(json_object_get(f.about, "pipeline"));
    enum tec_status status = tec_view_data(&data, &f, INT64_MIN, SIZE_MAX, err);
    if (status == TEC_OK)
        tec_view_page(&page, name ? name : "recording", &data);
    if (status == TEC_OK)
        status =
            page.failed
                ? tec_fail(err, TEC_NO_MEMORY, "no memory for a page")
                : tec_context(err, tec_outfile_file_write(path, page.data, page.n, err), "--html");
    tec_buffer_finish(&data);
    tec_buffer_finish(&page);
    tec_flight_close(&f);
    return status;
}

static enum tec_status write_ros2(struct tec_invocation *call, struct tec_error *err)
{
    const struct replay_options *o = call->options;
    const struct tec_ros2_options bag = {call->args.item[0], o->ros2, o->joints};
    struct tec_ros2_counts c;
    TEC_TRY(tec_ros2_write(&c, &bag, call->heap, err));
    if (c.damage[0])
        tec_say(call, "%s: %s", bag.recording, c.damage);
    if (c.joints && !c.named)
        tec_say(call,
                "--joints: no action and no state has %d numbers, so that their columns are "
                "numbered",
                c.joints);
    if (call->shared.format == TEC_FORMAT_TEXT) {
        fprintf(call->out, "%lld messages on %d topics, %lld left out\n", (long long)c.messages,
                c.topics, (long long)c.left_out);
        return TEC_OK;
    }
    json_t *json = json_pack("{s:I, s:i, s:I}", "messages", (json_int_t)c.messages, "topics",
                             c.topics, "left_out", (json_int_t)c.left_out);
    enum tec_status status = tec_json_print(call->out, json, JSON_COMPACT, "what a bag holds", err);
    json_decref(json);
    return status;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct replay_options *o = call->options;
    if (o->joints && !o->ros2)
        return tec_fail(err, TEC_INVALID, "--joints names what --ros2 writes");
    if (o->ros2 && (o->html || o->sim || o->diff || o->speed > 0.0))
        return tec_fail(err, TEC_INVALID,
                        "--ros2 writes what was recorded: without --html, --sim, --diff, --speed");
    if (o->ros2 && !o->empty)
        return write_ros2(call, err);
    if (o->html && !o->diff && (o->sim || o->speed > 0.0))
        return tec_fail(err, TEC_INVALID,
                        "--html shows what was recorded: without --sim, --speed, or with --diff");
    if (o->sim && o->speed > 0.0)
        return tec_fail(err, TEC_INVALID, "--sim has a clock of its own: without --speed");
    if (o->every_ms > 0.0 && !o->sim)
        return tec_fail(err, TEC_INVALID, "--every is of a clock that --sim has");
    if (o->empty && (o->sim || o->ros2 || (o->html && !o->diff)))
        return tec_fail(err, TEC_INVALID, "--empty-memories is of frames that are run");
    if (o->html && !o->diff)
        return write_page(call, o->html, err);
    const struct tec_replay_options replay = {call->args.item[0], o->speed, o->every_ms, o->diff,
                                              o->empty,           o->html};
    struct tec_replay_counts counts;
    if (o->html) /* it is written at the end */
        TEC_TRY(tec_context(err, tec_outfile_file_check(o->html, err), "--html"));
    if (o->sim)
        return tec_replay_simulate(call, &replay, err);
    TEC_TRY(tec_replay_run(&counts, call, &replay, err));
    bool all_followed = counts.by_policy == 0;
    call->wrong = counts.chunks_differ || counts.chunks_missing || counts.texts_differ ||
                  (all_followed && counts.plans_differ);
    return tell(call, &counts, err);
}

const struct tec_command tec_command_replay = {
    .usage = "replay [options] FILE.mcap",
    .about =
        "FILE.mcap is a recording of run --record or serve --record. Its frames are run again "
        "with\n"
        "the inputs, ticks and requests that it holds, on its pipeline and weights unless options\n"
        "say otherwise; actions and texts are held against the recorded ones, byte for byte. Exit\n"
        "code 1 where any differ. Frames are decided as they were, whatever launches take today;\n"
        "with --policy, --param, --costs, --set policy... or --set of a deadline it is decided\n"
        "afresh, and so it is where the recording does not say what was decided, which is told.\n"
        "Where all was decided as recorded, plans that differ are exit code 1, too. JSON: {frames, "
        "seconds, "
        "speed,\n"
        "actions {equal, differ, missing}, texts {equal, differ, partial}, plans {equal, differ},\n"
        "decided {recorded, policy}, stops {number, resets, stopped}, not_begun {number, "
        "causes}};\n"
        "lines of --diff: {frame, session, was [[node, rows, k]], is, actions_equal, was_us, "
        "is_us,\n"
        "was_missed, is_missed, was_cause, is_cause}.\n"
        "\n"
        "--ros2: doc/ros.md says what is in the bag. JSON: {messages, topics, left_out}.\n"
        "\n"
        "--sim: ticks, requests and the lengths of texts are the recording's, launches take what\n"
        "--costs says, or else what they took then; doc/recording.md. JSON: {policy, was_policy,\n"
        "costs, frames, skipped, more, plans {equal, differ, first}, recorded, simulated}; lines "
        "of\n"
        "--diff: {frame, session, was, is, was_us, is_us, was_missed, is_missed, was_cause, "
        "is_cause,\n"
        "was_notes, is_notes}.\n",
    .example = "  tectum replay robot.mcap\n"
               "  tectum replay robot.mcap --policy policies/slack_k.lua --diff --html both.html\n"
               "  tectum replay robot.mcap --ros2 robot_bag\n"
               "  tectum replay robot.mcap --sim --policy policies/edf.lua --diff\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET |
             TEC_TAKES_POLICY | TEC_TAKES_COSTS | TEC_TAKES_CACHE | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct replay_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a recording",
    .offers = "FILE.mcap",
    .run = run,
};
