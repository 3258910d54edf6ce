/* cmd_simulate.c - the frame loop and the policies on a virtual clock with a table of costs. */
#include "tools/machine.h"
#include "tools/open_engine.h"
#include "tools/out_file.h"
#include "tools/simulate/world.h"
#include "tools/topology.h"

#include <string.h>

enum { MAX_FRAMES = 1000000000 };

struct simulate_options {
    const char *costs, *scenario, *trace;
    int frames, clock;
};

#define AT(member) offsetof(struct simulate_options, member)
static const struct tec_option options[] = {
    {"costs", 0, TEC_OPTION_TEXT, "FILE.costs", "what launches take, from `tectum profile`",
     AT(costs), 0, 0},
    {"scenario", 0, TEC_OPTION_TEXT, "FILE.json", "what happens from outside; else nothing does",
     AT(scenario), 0, 0},
    {"frames", 'n', TEC_OPTION_INT, "N", "ticks a session; the scenario's, else 100", AT(frames), 1,
     MAX_FRAMES},
    {"clock", 0, TEC_OPTION_WORD, "scenario|saturated|paced",
     "a frame after the other, or one each period", AT(clock), 0, 0},
    {"trace", 0, TEC_OPTION_TEXT, "FILE.jsonl", "every event, a JSON line each", AT(trace), 0, 0},
};

struct simulation {
    const struct simulate_options *o;
    struct tec_invocation *call;
    struct tec_opened opened;
    struct tec_virtual device;
    struct tec_scenario scenario;
    struct tec_cost_table costs;
    struct tec_out_file trace;
    struct tec_world world;
};

static enum tec_status read_inputs(struct simulation *s, struct tec_error *err)
{
    const struct simulate_options *o = s->o;
    if (!o->costs)
        return tec_fail(err, TEC_INVALID,
                        "there is nothing to tell how long launches take: give --costs FILE");
    TEC_TRY(tec_cost_table_read(&s->costs, o->costs, s->call->arena, err));
    tec_scenario_default(&s->scenario);
    if (o->scenario)
        TEC_TRY(tec_scenario_read(&s->scenario, o->scenario, s->call->arena, err));
    if (o->frames)
        s->scenario.frames = o->frames;
    if (o->clock)
        s->scenario.paced = o->clock == 2;
    return TEC_OK;
}

static enum tec_status open_all(struct simulation *s, struct tec_error *err)
{
    struct tec_engine_options options_of;
    const struct tec_engine_options more = {.saturated = !s->scenario.paced};
    TEC_TRY(tec_open_options(&s->opened, &options_of, s->call, s->call->args.item[0], &more, err));
    options_of.random = true;
    options_of.progress = NULL;
    tec_world_connect(&s->world, &s->device, &options_of);
    TEC_TRY(tec_engine_simulate(&s->opened.engine, &options_of, &s->device, s->call->heap, err));
    TEC_TRY(tec_use_policy(&s->opened, NULL, err));
    if (s->o->trace)
        TEC_TRY(tec_out_file_open(&s->trace, s->o->trace, err));
    const struct tec_world_options w = {.pipeline = s->opened.pipeline,
                                        .scenario = &s->scenario,
                                        .costs = &s->costs,
                                        .engine = s->opened.engine,
                                        .device = &s->device,
                                        .policy = s->opened.policy,
                                        .trace = s->trace.file};
    return tec_world_init(&s->world, &w, s->call->arena, err);
}

static json_t *report(struct simulation *s)
{
    const struct tec_policy_report *p = tec_policy_report(s->opened.policy);
    json_t *row = tec_summary_json(&s->world.summary);
    json_object_set_new(row, "policy", json_string(tec_used_policy(&s->opened)));
    json_object_set_new(row, "failures", json_integer(p->failures));
    json_object_set_new(row, "quarantined", json_boolean(p->quarantined));
    return json_pack("{s:o,s:s,s:s,s:[o]}", "machine", json_null(), "clock", "virtual", "commit",
                     tec_machine_commit(), "rows", row);
}

static enum tec_status tell(struct simulation *s, struct tec_error *err)
{
    const struct tec_policy_report *p = tec_policy_report(s->opened.policy);
    if (s->world.summary.out_of_memory)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a summary");
    TEC_TRY(tec_out_file_keep(&s->trace, err));
    if (p->failures)
        tec_say(s->call, "%s", p->message);
    if (s->call->shared.format != TEC_FORMAT_JSON) {
        tec_summary_print(&s->world.summary, tec_used_policy(&s->opened), s->call->out);
        return TEC_OK;
    }
    json_t *json = report(s);
    json_dumpf(json, s->call->out, JSON_INDENT(1));
    fputc('\n', s->call->out);
    json_decref(json);
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    struct simulation *s = TEC_NEW(call->arena, 1, struct simulation);
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a simulation");
    s->o = call->options;
    s->call = call;
    enum tec_status status = read_inputs(s, err);
    if (status == TEC_OK)
        status = open_all(s, err);
    if (status == TEC_OK)
        status = tec_world_run(&s->world, err);
    if (status == TEC_OK)
        status = tell(s, err);
    tec_out_file_drop(&s->trace);
    tec_close_engine(&s->opened);
    return status;
}

const struct tec_command tec_command_simulate = {
    .usage = "simulate [options] FILE",
    .about =
        "The real frame loop and the real policy on a virtual clock: launches take what a cost\n"
        "table says, requests and accidents come from a scenario. No checkpoint is read. Events\n"
        "and scenarios are described in doc/schedules.md.\n",
    .example = "  tectum simulate pipelines/pi05_aloha.lua --policy oxygen --costs aloha.costs\n"
               "  tectum simulate robot.lua --costs robot.costs --scenario bad_day.json \\\n"
               "    --policy slack_k --trace events.jsonl\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_MODEL | TEC_TAKES_SET | TEC_TAKES_POLICY | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct simulate_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file",
    .run = run,
};
