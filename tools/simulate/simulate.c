/* simulate.c - one simulated run from files to a summary: it opens the pipeline, the costs, the
 * scenario and the policy, and runs their simulator. */
#include "tools/simulate/simulate.h"

#include "tools/measure/costs_file.h"
#include "tools/measure/costs_settings.h"
#include "tools/measure/measure.h"

enum { PATIENCE_US = 200000 };

static enum tec_status read_inputs(struct tec_simulation *s, const struct tec_invocation *call,
                                   const struct tec_simulation_options *o, struct tec_error *err)
{
    if (!o->costs && !(o->launch_ms > 0.0))
        return tec_fail(err, TEC_INVALID,
                        "there is nothing to tell how long launches take: give --costs FILE or "
                        "--launch-ms X");
    if (o->costs)
        TEC_TRY(tec_profile_costs_read(&s->costs, call, o->costs, err));
    tec_scenario_default(&s->scenario);
    if (o->scenario)
        TEC_TRY(tec_scenario_read(&s->scenario, o->scenario, call->arena, err));
    if (o->frames)
        s->scenario.frames = o->frames;
    if (o->clock)
        s->scenario.paced = o->clock == 2;
    return TEC_OK;
}

/* Read a generator of requests; where it gives no length, requests are as long as the longest task
 * allows. */
static enum tec_status read_arrivals(struct tec_simulation *s, const char *text, uint64_t seed,
                                     struct tec_error *err)
{
    const struct tec_loop_options *loop = tec_loop_settings(s->opened.engine->loop);
    int longest = 0;
    for (int i = 0; i < loop->n_decoders; i++)
        longest = loop->decoders[i].max_tokens > longest ? loop->decoders[i].max_tokens : longest;
    if (longest == 0)
        return tec_fail(err, TEC_INVALID, "--arrivals: the pipeline has no decode node");
    return tec_arrivals_parse(&s->arrivals, text, longest, seed, err);
}

/* Make a table in which every node, and every launch of a ring, takes the same time. */
static enum tec_status even_costs(struct tec_cost_table *out, const struct tec_pipeline *p,
                                  double us, struct tec_arena *arena, struct tec_error *err)
{
    static const char *const of_rings[] = {"packed", "decode"};
    size_t room = (size_t)p->n_nodes + 2 + 2 * (size_t)p->n_resources;
    *out = (struct tec_cost_table){.rows = TEC_NEW(arena, room, struct tec_cost_row)};
    for (size_t i = 0; out->rows && i < room; i++) {
        int node = (int)i, at = node - p->n_nodes;
        const char *name = node < p->n_nodes ? p->nodes[node].name
                           : at < 2          ? of_rings[at]
                                             : tec_arena_printf(arena, "%s.%s", of_rings[at % 2],
                                                                p->resources[at / 2 - 1].name);
        if (!name)
            out->rows = NULL;
        else
            out->rows[out->n_rows++] = (struct tec_cost_row){
                .node = name, .n = 1, .min = us, .p50 = us, .p99 = us, .p999 = us, .max = us};
    }
    return out->rows ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %d costs", p->n_nodes);
}

static enum tec_status open_all(struct tec_simulation *s, struct tec_invocation *call,
                                const struct tec_simulation_options *o, struct tec_error *err)
{
    struct tec_engine_options options;
    TEC_TRY(read_inputs(s, call, o, err));
    const struct tec_engine_options more = {.saturated = !s->scenario.paced};
    TEC_TRY(tec_cli_open_simulated(&s->opened, &options, call, o->pipeline, &more, err));
    if (!o->costs)
        TEC_TRY(even_costs(&s->costs, s->opened.pipeline, o->launch_ms * 1e3, call->arena, err));
    tec_profile_costs_steps(call, &s->costs, s->opened.pipeline, o->costs);
    tec_profile_costs_settings_say(call, &s->costs, s->opened.pipeline, NULL, o->costs);
    /* The real time of a call decides nothing here, so that a slow machine cannot change what
     * happens. */
    s->opened.pipeline->guard.hard_us = PATIENCE_US;
    options.random = tec_measured_by(call, s->opened.pipeline) != TEC_MEASURED_CHECKPOINT;
    options.progress = NULL;
    tec_simulator_connect(&s->simulator, s->device, &options);
    TEC_TRY(tec_engine_simulate(&s->opened.engine, &options, s->device, call->heap, err));
    TEC_TRY(tec_use_policy(&s->opened, NULL, err));
    if (o->arrivals)
        TEC_TRY(read_arrivals(s, o->arrivals, options.seed, err));
    const struct tec_simulator_options w = {.pipeline = s->opened.pipeline,
                                            .scenario = &s->scenario,
                                            .costs = &s->costs,
                                            .arrivals = o->arrivals ? &s->arrivals : NULL,
                                            .engine = s->opened.engine,
                                            .device = s->device,
                                            .policy = s->opened.policy,
                                            .trace = o->trace};
    return tec_simulator_init(&s->simulator, &w, call->arena, err);
}

enum tec_status tec_simulation_open(struct tec_simulation *s, struct tec_invocation *call,
                                    const struct tec_simulation_options *options,
                                    struct tec_error *err)
{
    enum tec_status status = open_all(s, call, options, err);
    if (status != TEC_OK)
        tec_simulation_close(s);
    return status;
}

enum tec_status tec_simulation_run(struct tec_simulation *s, struct tec_error *err)
{
    TEC_TRY(tec_simulator_run(&s->simulator, err));
    if (s->simulator.summary.out_of_memory)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a summary");
    return TEC_OK;
}

void tec_simulation_close(struct tec_simulation *s)
{
    tec_simulator_finish(&s->simulator);
    tec_close_engine(&s->opened);
}
