/* cmd_simulate.c - the frame loop and the policies on a virtual clock with a table of costs. */
#include "base/json_text.h"
#include "base/out_file.h"
#include "tools/measure/machine.h"
#include "tools/simulate/simulate.h"

enum { MAX_FRAMES = 1000000000 };

struct simulate_options {
    const char *costs, *scenario, *arrivals, *trace, *dump;
    double launch_ms;
    int frames, clock;
};

#define AT(member) offsetof(struct simulate_options, member)
static const struct tec_option options[] = {
    {"costs", 0, TEC_OPTION_TEXT, "FILE.costs", "what launches take, from `tectum profile`",
     AT(costs), 0, 0},
    {"launch-ms", 0, TEC_OPTION_NUMBER, "X",
     "in place of --costs: what every launch takes, and every step of a decode", AT(launch_ms),
     0.001, 1000000},
    {"scenario", 0, TEC_OPTION_TEXT, "FILE.json", "what happens from outside; else nothing does",
     AT(scenario), 0, 0},
    {"arrivals", 0, TEC_OPTION_TEXT, "SPEC",
     "requests besides: uniform:4, poisson:0.5, bursty:6,10, lengths:5,20,0.3, cancel:0.1,3, or "
     "several joined by +",
     AT(arrivals), 0, 0},
    {"frames", 'n', TEC_OPTION_INT, "N", "ticks a session; the scenario's, else 100", AT(frames), 1,
     MAX_FRAMES},
    {"clock", 0, TEC_OPTION_WORD, "scenario|saturated|paced",
     "a frame after the other, or one each period", AT(clock), 0, 0},
    {"trace", 0, TEC_OPTION_TEXT, "FILE.jsonl", "every event, a JSON line each", AT(trace), 0, 0},
    {"dump", 0, TEC_OPTION_TEXT, "FILE.jsonl",
     "the policy's last 64 frames when it was quarantined", AT(dump), 0, 0},
};

/* The words of this call, as they could be typed again. */
static const char *command_of(const struct tec_invocation *call)
{
    const struct simulate_options *o = call->options;
    const struct tec_shared *shared = &call->shared;
    const char *text = tec_arena_printf(call->arena, "tectum simulate %s", call->args.item[0]);
    const char *const named[][2] = {{"costs", o->costs},
                                    {"scenario", o->scenario},
                                    {"arrivals", o->arrivals},
                                    {"policy", shared->policy}};
    for (size_t i = 0; text && i < sizeof named / sizeof named[0]; i++)
        if (named[i][1])
            text = tec_arena_printf(call->arena, "%s --%s %s", text, named[i][0], named[i][1]);
    if (text && o->launch_ms > 0)
        text = tec_arena_printf(call->arena, "%s --launch-ms %g", text, o->launch_ms);
    if (text && o->frames)
        text = tec_arena_printf(call->arena, "%s --frames %d", text, o->frames);
    if (text && o->clock)
        text = tec_arena_printf(call->arena, "%s --clock %s", text,
                                o->clock == 1 ? "saturated" : "paced");
    return tec_cli_typed(call, text);
}

static json_t *report(struct tec_invocation *call, struct tec_simulation *s)
{
    const struct tec_policy_report *p = tec_policy_report(s->opened.policy);
    json_t *row = tec_summary_json(&s->simulator.summary);
    json_object_set_new(row, "policy", json_string(tec_used_policy(&s->opened)));
    const char *params = tec_used_params(call->arena, s->opened.policy, "");
    json_object_set_new(row, "params", params ? json_string(params) : NULL);
    json_object_set_new(row, "failures", json_integer(p->failures));
    json_object_set_new(row, "quarantined", json_boolean(p->quarantined));
    return json_pack("{s:o,s:s,s:s,s:s?,s:[o]}", "machine", json_null(), "clock", "virtual",
                     "commit", tec_machine_commit(), "command", command_of(call), "rows", row);
}

static enum tec_status tell(struct tec_invocation *call, struct tec_simulation *s,
                            struct tec_error *err)
{
    const struct tec_policy_report *p = tec_policy_report(s->opened.policy);
    if (p->struck)
        tec_say(call, "%s", p->message);
    if (call->shared.format != TEC_FORMAT_JSON) {
        tec_summary_print(&s->simulator.summary, tec_used_policy(&s->opened), call->out);
        return TEC_OK;
    }
    json_t *json = report(call, s);
    enum tec_status status = tec_json_print(call->out, json, JSON_INDENT(1), "a report", err);
    json_decref(json);
    return status;
}

/* No file is written for a policy that stayed in force. */
static enum tec_status write_dump(const char *path, const struct tec_simulation *s,
                                  struct tec_error *err)
{
    struct tec_out_file out = {0};
    if (!path || !tec_policy_report(s->opened.policy)->quarantined)
        return TEC_OK;
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    enum tec_status status = tec_policy_dump(s->opened.policy, out.file, err);
    if (status == TEC_OK)
        status = tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    return status;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct simulate_options *o = call->options;
    struct tec_simulation *s = TEC_NEW(call->arena, 1, struct tec_simulation);
    struct tec_out_file trace = {0};
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a simulation");
    if (o->trace)
        TEC_TRY(tec_outfile_file_open(&trace, o->trace, err));
    const struct tec_simulation_options options_of = {.pipeline = call->args.item[0],
                                                      .costs = o->costs,
                                                      .launch_ms = o->launch_ms,
                                                      .scenario = o->scenario,
                                                      .arrivals = o->arrivals,
                                                      .frames = o->frames,
                                                      .clock = o->clock,
                                                      .trace = trace.file};
    enum tec_status status = tec_simulation_open(s, call, &options_of, err);
    if (status == TEC_OK)
        status = tec_simulation_run(s, err);
    if (trace.why)
        status = tec_outfile_file_failed(&trace, err);
    if (status == TEC_OK && o->trace)
        status = tec_outfile_file_keep(&trace, err);
    if (status == TEC_OK)
        status = write_dump(o->dump, s, err);
    if (status == TEC_OK)
        status = tell(call, s, err);
    tec_outfile_file_drop(&trace);
    tec_simulation_close(s);
    return status;
}

const struct tec_command tec_command_simulate = {
    .usage = "simulate [options] FILE",
    .about =
        "The real frame loop and the real policy on a virtual clock: launches take what a cost\n"
        "table says, requests and accidents come from a scenario. No weight is read. Events\n"
        "and scenarios are described in doc/schedules.md.\n",
    .example = "  tectum simulate pipelines/pi05_aloha.lua --policy oxygen --costs aloha.costs\n"
               "  tectum simulate robot.lua --costs robot.costs --scenario bad_day.json \\\n"
               "    --policy slack_k --trace events.jsonl\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_COSTED | TEC_TAKES_MODEL | TEC_TAKES_SET |
             TEC_TAKES_POLICY | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct simulate_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = run,
};
