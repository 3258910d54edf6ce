/* engines.c - the engines that the suite's points run on. */
#include "tools/suite/engines.h"

#include "tools/random_input.h"
#include "tools/topology.h"

#include <string.h>

/* The words of a plan: S steps, chunks of H where there are actions, `seats` requests. Every k of
 * the sweeps is a count on the CPU, not a capture. */
static enum tec_status set_words(struct tec_suite_engine *e, const struct tec_suite *suite, int S,
                                 int seats, const char *batches, struct tec_error *err)
{
    const struct tec_words *given = &suite->call->shared.set;
    const char **words = TEC_NEW(&e->arena, (size_t)given->n + 8, const char *);
    int n = 0;
    if (!words)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the words of a plan");
    if (S > 0) {
        words[n++] = tec_arena_printf(&e->arena, "nodes.act.steps=%d", S);
        words[n++] =
            tec_arena_printf(&e->arena, "resources.chunk.shape=[%d,32]", TEC_SUITE_HORIZON);
    }
    words[n++] = tec_arena_printf(&e->arena, "resources.lang.slots=%d", seats);
    words[n++] = tec_arena_printf(&e->arena, "capture.batch=[%s]", batches);
    words[n++] = "capture.k=[1,2,3,5,6,10,15,20,30]";
    for (int i = 0; i < given->n; i++)
        words[n++] = given->item[i];
    for (int i = 0; i < n; i++)
        if (!words[i])
            return tec_fail(err, TEC_NO_MEMORY, "no memory for the words of a plan");
    e->call.shared.set = (struct tec_words){n, words};
    return TEC_OK;
}

static void begin(struct tec_suite_engine *e, const struct tec_suite *suite, int threads)
{
    memset(e, 0, sizeof *e);
    e->call = *suite->call;
    e->open = true;
    tec_arena_init(&e->arena, suite->call->heap);
    if (threads)
        e->call.shared.threads = threads;
    e->call.shared.random_weights = (struct tec_seed){true, suite->seed};
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
static enum tec_status make_loop(struct tec_suite_engine *e, struct tec_error *err)
{
    struct tec_engine *engine = e->opened.engine;
    struct tec_loop_options o = {.plan = engine->plan,
                                 .topology = &engine->topology,
                                 .executor = tec_executor_real(engine->plan),
                                 .planner = tec_default_planner,
                                 .prefill_node = node_of(&engine->topology, "prefill"),
                                 .action_node = node_of(&engine->topology, "action")};
    int talk = node_of(&engine->topology, "decode");
    o.n_decoders = 1;
    o.decoders[0] = (struct tec_decoder){
        .name = engine->topology.nodes[talk].name, .node = talk, .max_tokens = TEC_SUITE_TOKENS};
    tec_loop_destroy(engine->loop);
    engine->loop = NULL;
    return tec_loop_create(&engine->loop, &o, e->call.heap, err);
}

/* Three observations of each kind; a padded one has a long prompt and black where the other robots
 * have no camera. */
static enum tec_status make_values(struct tec_suite_engine *e, uint64_t seed, struct tec_error *err)
{
    static const int prompts[] = {TEC_SUITE_PROMPT, TEC_SUITE_PADDED_PROMPT};
    const struct tec_robot *robot = tec_session_robot(e->opened.engine->session);
    int vocab = e->opened.engine->model->text.vocab;
    for (int kind = 0; kind < TEC_SUITE_INPUTS; kind++) {
        uint64_t state = seed * 2 + 1;
        for (int i = 0; i < TEC_BENCH_INPUTS; i++) {
            struct tec_value *values = e->values[kind][i];
            TEC_TRY(tec_random_inputs(values, TEC_SUITE_VALUES, &e->n_values, e->opened.pipeline,
                                      robot, prompts[kind], vocab, &state, &e->arena, err));
            for (size_t v = 0; v < e->n_values; v++)
                if (kind == TEC_SUITE_PADDED && strstr(values[v].name, "cam_right_wrist"))
                    values[v].data = tec_arena_push(&e->arena, values[v].bytes, 1, 1);
            for (size_t v = 0; v < e->n_values; v++)
                if (!values[v].data)
                    return tec_fail(err, TEC_NO_MEMORY, "no memory for a black picture");
        }
    }
    return TEC_OK;
}

enum tec_status tec_suite_open(struct tec_suite_engine *e, struct tec_suite *suite,
                               const char *file, int S, int threads, struct tec_error *err)
{
    const struct tec_engine_options more = {.saturated = true};
    begin(e, suite, threads);
    enum tec_status status = set_words(e, suite, S, suite->full ? 8 : TEC_SUITE_SEATS,
                                       suite->full ? "1,3,6,8" : "1,2,3,4,5,6,10,15,24,32", err);
    if (status == TEC_OK) {
        e->call.arena = &e->arena;
        status = tec_need_root(&e->call, err);
    }
    const char *path =
        status == TEC_OK ? tec_arena_printf(&e->arena, "%s/%s", e->call.root, file) : NULL;
    if (path)
        status = tec_open_engine(&e->opened, &e->call, path, &more, err);
    if (status == TEC_OK && !path)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    if (status == TEC_OK) {
        e->opened.engine->model->text.eos = -1; /* the experiments never stop early */
        status = make_loop(e, err);
    }
    if (status == TEC_OK)
        status = make_values(e, suite->seed, err);
    if (status == TEC_OK)
        status = tec_suite_show(e, TEC_SUITE_COMPACT, err);
    if (status != TEC_OK)
        tec_suite_close(e);
    return tec_context(err, status, "%s with S = %d", file, S);
}

void tec_suite_close(struct tec_suite_engine *e)
{
    if (!e->open)
        return;
    tec_close_engine(&e->opened);
    tec_arena_finish(&e->arena);
    e->open = false;
}

enum tec_status tec_suite_show(struct tec_suite_engine *e, enum tec_suite_input kind,
                               struct tec_error *err)
{
    for (int i = 0; i < TEC_BENCH_INPUTS; i++)
        TEC_TRY(tec_session_observe(e->opened.engine->session, e->values[kind][i], e->n_values,
                                    NULL, i, 0, &e->input[i], NULL, err));
    return TEC_OK;
}

enum tec_status tec_suite_measure(int64_t *bytes, struct tec_suite *suite, const char *file,
                                  int seats, struct tec_error *err)
{
    struct tec_suite_engine e;
    struct tec_engine_options options;
    struct tec_measured measured;
    char batches[8];
    begin(&e, suite, 0);
    e.call.arena = &e.arena;
    snprintf(batches, sizeof batches, seats > 1 ? "1,%d" : "%d", seats);
    enum tec_status status =
        set_words(&e, suite, strstr(file, "text") ? 0 : 10, seats, batches, err);
    if (status == TEC_OK)
        status = tec_need_root(&e.call, err);
    const char *path =
        status == TEC_OK ? tec_arena_printf(&e.arena, "%s/%s", e.call.root, file) : NULL;
    if (path)
        status = tec_open_options(&e.opened, &options, &e.call, path, NULL, err);
    if (path && status == TEC_OK)
        status = tec_engine_measure(&measured, &options, e.call.heap, &e.arena, err);
    if (path && status == TEC_OK)
        *bytes = measured.bytes.total;
    tec_suite_close(&e);
    return status;
}
