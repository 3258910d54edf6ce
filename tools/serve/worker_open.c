/* worker_open.c - the engine thread of the server before its first job: the engine, and room for as
 * many jobs as there may be connections. */
#include "tools/serve/worker_own.h"

#include "tools/serve/reply.h"

#include <string.h>

enum { TEXT_BYTES_A_TOKEN = 64, MAX_TOKENS = 1 << 14 };

static const char *prompt_key(const struct tec_worker *w)
{
    const struct tec_robot *robot = tec_session_robot(w->opened.engine->session);
    const struct tec_pipeline *p = w->opened.pipeline;
    if (robot)
        return robot->prompt_input;
    for (int i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].kind == TEC_INPUT_TEXT)
            return p->inputs[i].name;
    return "prompt";
}

/* The bytes of the longest text that a decode node can make; 0 without a decode node. */
static int text_bytes(const struct tec_pipeline *p, const struct tec_topology *t)
{
    int most = 0;
    for (int i = 0; i < t->n_nodes; i++) {
        int tokens = p->nodes[tec_pipeline_find_node(p, t->nodes[i].name)].max_tokens;
        if (tec_topology_decodes(t, i) && tokens > most)
            most = tokens;
    }
    return (most < MAX_TOKENS ? most : MAX_TOKENS) * TEXT_BYTES_A_TOKEN;
}

/* The first action node's chunk is "actions", as openpi has it; others' are named by their buffer,
 * or by the node where they have none. */
static void name_actions(struct tec_worker *w)
{
    const struct tec_decl_node *n;
    w->n_actions = 0;
    while (w->n_actions < TEC_MAX_ACTIONS &&
           (n = tec_pipeline_action(w->opened.pipeline, w->n_actions)))
        w->outs[w->n_actions++] = n->out.name ? n->out.name : n->name;
    w->n_actions += w->n_actions == 0;
    const struct tec_loop_options *o = tec_loop_settings(w->opened.engine->loop);
    for (int d = 0; d < o->n_decoders; d++) {
        n = &w->opened.pipeline
                 ->nodes[tec_pipeline_find_node(w->opened.pipeline, o->decoders[d].name)];
        w->streams[d] = n->out.name;
    }
}

static bool open_sessions(struct tec_worker *w, int n)
{
    const struct tec_engine *e = w->opened.engine;
    const struct tec_flow *f = &e->model->flow;
    w->n_sessions = e->n_sessions;
    w->sessions = TEC_NEW(&w->arena, (size_t)w->n_sessions, struct tec_worker_session);
    bool ok = w->sessions != NULL;
    for (int i = 0; ok && i < w->n_sessions; i++) {
        w->sessions[i] = (struct tec_worker_session){
            .index = i,
            .client = -1,
            .session = e->sessions[i],
            .taken = -1,
            .job = -1,
            .cancels = TEC_NEW(&w->arena, (size_t)n + 1, int64_t),
            .noise = TEC_NEW(&w->arena, (size_t)f->horizon * (size_t)f->dim + 1, float)};
        ok = w->sessions[i].cancels && w->sessions[i].noise &&
             tec_worker_texts_create(w, &w->sessions[i]);
    }
    return ok;
}

static enum tec_status take_memory(struct tec_worker *w, int n, int limit_rows,
                                   struct tec_error *err)
{
    const struct tec_engine *e = w->opened.engine;
    const struct tec_action_room room = tec_engine_room(e);
    int rows = tec_session_rows(e->session);
    w->stages = tec_topology_stages(&e->topology);
    w->columns = tec_session_columns(e->session);
    w->rows = limit_rows > 0 && limit_rows < rows ? limit_rows : rows;
    w->text_bytes = text_bytes(w->opened.pipeline, &e->topology);
    w->prompt = prompt_key(w);
    w->actions = TEC_NEW(&w->arena, (size_t)room.rows * (size_t)room.columns + 1, double);
    w->jobs = TEC_NEW(&w->arena, (size_t)n, struct tec_worker_job);
    bool all = w->actions && w->jobs && open_sessions(w, n);
    TEC_TRY(tec_runtime_attach(&w->runtime, w->opened.engine, &w->arena, err));
    TEC_TRY(tec_runtime_record(&w->runtime, &w->arena, err));
    name_actions(w);
    for (int i = 0; all && i < n * w->n_actions; i++) {
        const struct tec_session *of = tec_engine_session(e, i % w->n_actions);
        int *shape = w->others[i % w->n_actions], all_rows = tec_session_rows(of);
        shape[0] = limit_rows > 0 && limit_rows < all_rows ? limit_rows : all_rows;
        shape[1] = tec_session_columns(of);
        double *actions = TEC_NEW(&w->arena, (size_t)shape[0] * (size_t)shape[1] + 1, double);
        w->jobs[i / w->n_actions].actions[i % w->n_actions] = actions;
        all = actions != NULL;
    }
    if (!all)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d connections", n);
    TEC_TRY(tec_exchange_init(w->exchange, n, &w->runtime,
                              tec_reply_size(room.rows, room.columns, w->n_actions,
                                             (size_t)w->text_bytes,
                                             w->text_bytes ? TEC_WORKER_TEXTS : 0,
                                             w->text_bytes ? TEC_WORKER_TEXT_BYTES : 0),
                              &w->arena, err));
    for (int i = 0; i < n && all; i++) {
        struct tec_job *j = &w->exchange->jobs[i];
        j->actions = w->jobs[i].actions[0];
        j->text = TEC_NEW(&w->arena, (size_t)w->text_bytes + 1, char);
        all = j->text != NULL;
    }
    return all ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %d connections", n);
}

enum tec_status tec_worker_open(struct tec_worker *w, struct tec_invocation *call, const char *path,
                                const struct tec_worker_options *o, struct tec_error *err)
{
    const struct tec_runtime_listener listener = {tec_worker_left, tec_worker_lost, w};
    *w = (struct tec_worker){
        .exchange = o->exchange, .next = -1, .default_prompt = o->default_prompt};
    tec_runtime_init(&w->runtime, &listener);
    tec_turns_join(o->turns, &w->runtime);
    const struct tec_engine_options more = {.saturated = true,
                                            .actions = o->actions,
                                            .released = tec_runtime_released,
                                            .lost = tec_runtime_lost,
                                            .user = &w->runtime,
                                            .events = tec_runtime_events(&w->runtime),
                                            .shares = o->before ? o->before->opened.engine : NULL,
                                            .others = tec_turns_others(&w->runtime)};
    tec_arena_init(&w->arena, call->heap);
    tec_arena_init(&w->moment, call->heap);
    TEC_TRY(tec_cli_open_engine(&w->opened, call, path, &more, err));
    enum tec_status status = take_memory(w, o->n, o->limit_rows, err);
    w->gather_ns = tec_loop_settings(w->opened.engine->loop)->gather_ns;
    if (status == TEC_OK)
        status = tec_use_policy(&w->opened, NULL, err);
    if (status != TEC_OK)
        tec_worker_close(w);
    w->runtime.source = tec_worker_source(w);
    return status;
}

void tec_worker_close(struct tec_worker *w)
{
    if (!w->opened.call)
        return;
    tec_close_engine(&w->opened);
    tec_arena_finish(&w->moment);
    tec_arena_finish(&w->arena);
    w->opened.call = NULL;
}
