/* engines.c - rings as the suite's pipeline and words over it say. */
#include "tests/experiments/actionflow/engines.h"

#include "tools/frames/random_input.h"

#include <string.h>

static const char pipeline_file[] = "pipelines/suite/ring.lua";

/* Everything of a ring that is part of its plan. */
static enum tec_status set_words(struct tec_actionflow_engine *e, const struct tec_actionflow *s,
                                 const struct tec_actionflow_cell *c,
                                 enum tec_actionflow_variant variant, struct tec_error *err)
{
    struct tec_arena *a = &e->base.arena;
    const char *words[9];
    int n = 0;
    words[n++] = tec_arena_printf(a, "inputs.instruction.max_tokens=%d", c->text);
    words[n++] = tec_arena_printf(a, "resources.ring.stages=%d", c->stages);
    words[n++] = tec_arena_printf(a, "resources.ring.tokens=%d", s->vision + c->text + c->stages);
    words[n++] = tec_arena_printf(a, "resources.action.shape=[%d]", c->stages);
    words[n++] = tec_arena_printf(a, "nodes.advance.max_tokens=%d", c->stages);
    words[n++] = c->stages > 1 ? tec_arena_printf(a, "capture.depth=[1,%d]", c->stages)
                               : "capture.depth=[1]";
    if (variant == TEC_ACTIONFLOW_COPY)
        words[n++] = "resources.ring.shift=device_copy";
    if (variant == TEC_ACTIONFLOW_GATHER)
        words[n++] = "resources.ring.pack=gather";
    return tec_suite_set(&e->base, words, n, err);
}

/* The engine's own loop but for deadlines, flushes and who listens. */
static enum tec_status make_loop(struct tec_actionflow_engine *e, struct tec_event_sink events,
                                 struct tec_error *err)
{
    struct tec_engine *engine = e->base.opened.engine;
    struct tec_loop_options o = *tec_loop_settings(engine->loop);
    o.planner = tec_default_planner;
    o.actions[0].deadline_ns = o.period_ns = 0;
    o.chains[0].flushes = false;
    o.released = NULL;
    o.events = events;
    o.chains[0].executor =
        tec_actionflow_steps_executor(&e->steps, engine->plan, &o.chains[0].executor);
    tec_loop_destroy(engine->loop);
    engine->loop = NULL;
    return tec_loop_create(&engine->loop, &o, e->base.call.heap, err);
}

/* Three observations, the same for every variant of a cell. */
static enum tec_status make_inputs(struct tec_actionflow_engine *e, uint64_t seed, int text,
                                   struct tec_error *err)
{
    const struct tec_engine *engine = e->base.opened.engine;
    uint64_t state = seed * 2 + 1;
    for (int i = 0; i < TEC_BENCH_INPUTS; i++) {
        TEC_TRY(tec_random_inputs(e->values[i], TEC_ACTIONFLOW_VALUES, &e->n_values,
                                  e->base.opened.pipeline, engine->session,
                                  (struct tec_random_sizes){0, text, engine->model->text.vocab},
                                  &state, &e->base.arena, err));
        TEC_TRY(tec_session_observe(engine->session, e->values[i], e->n_values, NULL, i, 0,
                                    &e->input[i], NULL, err));
    }
    return TEC_OK;
}

static void measure_cell(const struct tec_actionflow_engine *e, struct tec_actionflow_cell *c)
{
    const struct tec_plan *plan = e->base.opened.engine->plan;
    const struct tec_kv_shape *s = &plan->space.shape;
    c->prefix = tec_prefix_rows(plan, &e->input[0].chains[0].prefix);
    c->token_bytes = tec_kv_token_bytes(s);
}

enum tec_status tec_actionflow_open(struct tec_actionflow_engine *e, struct tec_actionflow *s,
                                    struct tec_actionflow_cell *cell,
                                    enum tec_actionflow_variant variant,
                                    struct tec_event_sink events, struct tec_error *err)
{
    memset(e, 0, sizeof *e);
    tec_suite_begin(&e->base, s->call, s->seed, 0);
    e->base.interpret = variant == TEC_ACTIONFLOW_UNPACKED;
    enum tec_status status = set_words(e, s, cell, variant, err);
    if (status == TEC_OK)
        status = tec_suite_open(&e->base, pipeline_file, err);
    if (status == TEC_OK)
        status = make_loop(e, events, err);
    if (status == TEC_OK && variant == TEC_ACTIONFLOW_GATHER)
        status = tec_actionflow_steps_record(&e->steps, &e->base.arena, err);
    if (status == TEC_OK)
        status = make_inputs(e, s->seed, cell->text, err);
    if (status == TEC_OK)
        measure_cell(e, cell);
    else
        tec_actionflow_close(e);
    return tec_context(err, status, "%s with K = %d and a prompt of %d tokens", pipeline_file,
                       cell->stages, cell->text);
}

void tec_actionflow_close(struct tec_actionflow_engine *e)
{
    tec_actionflow_steps_close(&e->steps);
    tec_suite_close(&e->base);
}

enum tec_status tec_actionflow_vision(int *tokens, struct tec_actionflow *s, struct tec_error *err)
{
    struct tec_suite_engine e;
    struct tec_engine_options options;
    struct tec_engine *engine = NULL;
    const char *path;
    tec_suite_begin(&e, s->call, s->seed, 0);
    enum tec_status status = tec_suite_path(&e, pipeline_file, &path, err);
    if (status == TEC_OK)
        status = tec_cli_open_options(&e.opened, &options, &e.call, path, NULL, err);
    if (status == TEC_OK)
        status = tec_engine_plan(&engine, &options, e.call.heap, err);
    if (status == TEC_OK)
        *tokens = engine->model->vision.tokens;
    tec_engine_close(engine);
    tec_suite_close(&e);
    return tec_context(err, status, "%s", pipeline_file);
}
