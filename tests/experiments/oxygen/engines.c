/* engines.c - the engines that the suite's points run on. */
#include "tests/experiments/oxygen/engines.h"

#include "tools/api/topology.h"
#include "tools/frames/random_input.h"

#include <string.h>

/* The words of a plan: S steps, chunks of H where there are actions, `request_slots` requests.
 * Every k of the sweeps is a count on the CPU, not a capture. */
static enum tec_status set_words(struct tec_oxygen_engine *e, const struct tec_oxygen_plan *plan,
                                 int request_slots, const char *batches, struct tec_error *err)
{
    const char *words[8];
    int n = 0, S = plan->S;
    if (plan->sessions > 1) {
        words[n++] = tec_arena_printf(&e->base.arena, "frame.sessions=%d", plan->sessions);
        words[n++] = "capture.sessions=[1,2,4,8]";
    }
    if (S > 0) {
        words[n++] = tec_arena_printf(&e->base.arena, "nodes.act.steps=%d", S);
        words[n++] =
            tec_arena_printf(&e->base.arena, "resources.chunk.shape=[%d,32]", TEC_OXYGEN_HORIZON);
    }
    words[n++] = tec_arena_printf(&e->base.arena, "resources.lang.slots=%d", request_slots);
    words[n++] = tec_arena_printf(&e->base.arena, "capture.batch=[%s]", batches);
    words[n++] = "capture.k=[1,2,3,5,6,10,15,20,30]";
    return tec_suite_set(&e->base, words, n, err);
}

static int node_of(const struct tec_topology *t, const char *kind)
{
    for (int i = 0; i < t->n_nodes; i++)
        if (strcmp(t->nodes[i].kind, kind) == 0)
            return i;
    return -1;
}

/* A loop in place of the engine's own: language starts when asked and has no deadline, since a slow
 * machine would shed what the experiment counts. */
static enum tec_status make_loop(struct tec_oxygen_engine *e, struct tec_error *err)
{
    struct tec_engine *engine = e->base.opened.engine;
    struct tec_loop_options o = {
        .n_chains = 1, .topology = &engine->topology, .planner = tec_default_planner};
    o.chains[0] = (struct tec_loop_chain){.in_frames = true,
                                          .plan = engine->plan,
                                          .executor = tec_executor_real(engine->plan),
                                          .prefill_node = node_of(&engine->topology, "prefill")};
    int act = node_of(&engine->topology, "action");
    o.n_actions = 1;
    o.actions[0] = (struct tec_action){.name = engine->topology.nodes[act].name, .node = act};
    int talk = node_of(&engine->topology, "decode");
    o.n_decoders = 1;
    o.decoders[0] = (struct tec_decoder){
        .name = engine->topology.nodes[talk].name, .node = talk, .max_tokens = TEC_OXYGEN_TOKENS};
    tec_loop_destroy(engine->loop);
    engine->loop = NULL;
    return tec_loop_create(&engine->loop, &o, e->base.call.heap, err);
}

/* Three observations of each kind; a padded one has a long prompt and black where the other robots
 * have no camera. */
static enum tec_status make_values(struct tec_oxygen_engine *e, uint64_t seed,
                                   struct tec_error *err)
{
    static const int prompts[] = {TEC_OXYGEN_PROMPT, TEC_OXYGEN_PADDED_PROMPT};
    int vocab = e->base.opened.engine->model->text.vocab;
    for (int kind = 0; kind < TEC_OXYGEN_INPUTS; kind++) {
        uint64_t state = seed * 2 + 1;
        for (int i = 0; i < TEC_BENCH_INPUTS; i++) {
            struct tec_value *values = e->values[kind][i];
            TEC_TRY(tec_random_inputs(values, TEC_OXYGEN_VALUES, &e->n_values,
                                      e->base.opened.pipeline, e->base.opened.engine->session,
                                      (struct tec_random_sizes){0, prompts[kind], vocab}, &state,
                                      &e->base.arena, err));
            for (size_t v = 0; v < e->n_values; v++)
                if (kind == TEC_OXYGEN_PADDED && strstr(values[v].name, "cam_right_wrist"))
                    values[v].data = tec_arena_push(&e->base.arena, values[v].bytes, 1, 1);
            for (size_t v = 0; v < e->n_values; v++)
                if (!values[v].data)
                    return tec_fail(err, TEC_NO_MEMORY, "no memory for a black picture");
        }
    }
    return TEC_OK;
}

/* Lanes of its own are no choice of another device. */
static enum tec_status set_device(struct tec_oxygen_engine *e, const struct tec_oxygen *suite,
                                  struct tec_error *err)
{
    struct tec_device_options choice;
    TEC_TRY(tec_cli_device_choice(suite->call, &choice, err));
    if (!e->base.call.shared.device && !e->base.call.shared.tier)
        e->base.call.shared.device = choice.kind;
    return TEC_OK;
}

enum tec_status tec_oxygen_open(struct tec_oxygen_engine *e, struct tec_oxygen *suite,
                                const struct tec_oxygen_plan *plan, struct tec_error *err)
{
    int slots = suite->full ? 8 : TEC_OXYGEN_REQUEST_SLOTS;
    memset(e, 0, sizeof *e);
    tec_suite_begin(&e->base, suite->call, suite->seed, plan->threads);
    enum tec_status status = set_device(e, suite, err);
    if (status == TEC_OK)
        status = set_words(e, plan, plan->sessions > 1 ? 8 : slots,
                           suite->full ? "1,3,6,8" : "1,2,3,4,5,6,10,15,24,32", err);
    if (status == TEC_OK)
        status = tec_suite_open(&e->base, plan->file, err);
    if (status == TEC_OK)
        status = make_loop(e, err);
    if (status == TEC_OK)
        status = make_values(e, suite->seed, err);
    if (status == TEC_OK)
        status = tec_oxygen_show(e, TEC_OXYGEN_COMPACT, err);
    if (status != TEC_OK)
        tec_oxygen_close(e);
    return tec_context(err, status, "%s with S = %d", plan->file, plan->S);
}

void tec_oxygen_close(struct tec_oxygen_engine *e)
{
    tec_suite_close(&e->base);
}

enum tec_status tec_oxygen_show(struct tec_oxygen_engine *e, enum tec_oxygen_input kind,
                                struct tec_error *err)
{
    for (int i = 0; i < TEC_BENCH_INPUTS; i++)
        TEC_TRY(tec_session_observe(e->base.opened.engine->session, e->values[kind][i], e->n_values,
                                    NULL, i, 0, &e->input[i], NULL, err));
    return TEC_OK;
}

enum tec_status tec_oxygen_measure(int64_t *bytes, struct tec_oxygen *suite, const char *file,
                                   int request_slots, struct tec_error *err)
{
    struct tec_oxygen_engine e = {.n_values = 0};
    struct tec_engine_options options;
    struct tec_measured measured;
    const char *path;
    const struct tec_oxygen_plan plan = {.S = strstr(file, "text") ? 0 : 10};
    char batches[24];
    tec_suite_begin(&e.base, suite->call, suite->seed, 0);
    snprintf(batches, sizeof batches, request_slots > 1 ? "1,%d" : "%d", request_slots);
    enum tec_status status = set_words(&e, &plan, request_slots, batches, err);
    if (status == TEC_OK)
        status = tec_suite_path(&e.base, file, &path, err);
    if (status == TEC_OK)
        status = tec_cli_open_options(&e.base.opened, &options, &e.base.call, path, NULL, err);
    if (status == TEC_OK)
        status = tec_engine_measure(&measured, &options, e.base.call.heap, &e.base.arena, err);
    if (status == TEC_OK)
        *bytes = measured.bytes.total;
    tec_oxygen_close(&e);
    return status;
}
