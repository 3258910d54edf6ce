/* engine_memories.c - opens and closes the memories of an engine's chains, and puts what recalls
 * their prompts before the executors.
 *
 * Runs at load, but for settling. The store is opened before weights are read, as it may refuse a
 * file; its keys are computed once there is a plan. */
#include "graph/run/engine/engine_own.h"

#include "graph/run/launch/interpret.h"

/* What check reports; else the first bytes of tiers that are refused are kept in `out`. */
static void report_unused(const struct tec_engine *e, int chain, struct tec_measured *out)
{
    const struct tec_pipeline *p = e->options.pipeline;
    int nodes[TEC_MAX_MEMORIES], n = tec_memory_nodes(p, chain, nodes);
    for (int i = 0; i < n; i++) {
        const struct tec_decl_node *node = &p->nodes[nodes[i]];
        const struct tec_decl_resource *r = &p->resources[node->from.index];
        struct tec_memory_unused u;
        for (int k = 0; k < TEC_MEMORY_PLACES; k++) {
            if (!tec_memory_unused(&u, p, node, e->chains[chain].plan, k))
                continue;
            if (e->options.found)
                tec_diagnostics_add(e->options.found, u.refuses ? TEC_E011 : TEC_W110, u.where,
                                    "memory '%s': tiers.%s %s: %s", r->name, u.field,
                                    u.refuses ? "holds no text" : "keeps nothing", u.why);
            else if (u.refuses && !out->small_name) {
                out->small = u;
                out->small_name = r->name;
            }
        }
    }
}

enum tec_status tec_engine_check_tiers(const struct tec_engine *e, const struct tec_measured *m,
                                       struct tec_error *err)
{
    if (!m->small_name || e->options.forgets)
        return TEC_OK;
    return tec_where_fail(err, TEC_NO_MEMORY, &m->small.where,
                          "memory '%s': tiers.%s holds no text: %s", m->small_name, m->small.field,
                          m->small.why);
}

void tec_engine_measure_memories(const struct tec_engine *e, struct tec_measured *out)
{
    for (int i = 0; i < e->n_chains; i++) {
        const struct tec_memory_bytes one =
            tec_memory_measure(e->options.pipeline, i, e->chains[i].plan);
        out->memory.staging += one.staging;
        out->memory.kept += one.kept;
        out->memory.device += one.device;
        out->bytes.kv += one.device;
        out->bytes.total += one.device;
        out->needs[tec_engine_device_of(e, e->chains[i].of)] += one.device;
        report_unused(e, i, out);
    }
}

static enum tec_status open_memory(struct tec_engine *e, const struct tec_engine_chain *c, int node,
                                   const char *content, struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    const struct tec_checkpoint *checkpoint = c->of->checkpoint;
    const char *made = tec_arena_printf(&e->arena, "random %llu, %s", (unsigned long long)o->seed,
                                        o->size ? o->size : "full");
    const struct tec_memory_options m = {.pipeline = o->pipeline,
                                         .node = node,
                                         .sessions = o->pipeline->frame.sessions,
                                         .model = c->of->model,
                                         .weights = o->random ? made : checkpoint->hash,
                                         .content = content,
                                         .tokenizer = c->of->tokenizer,
                                         .root = o->root,
                                         .forgets = o->forgets,
                                         .starts = o->starts,
                                         .n_starts = o->n_starts,
                                         .bf16 = tec_engine_bf16(e, c->of),
                                         .quantize = tec_engine_quantize(e, c->of),
                                         .round = tec_engine_round(e, c->of),
                                         .device = &o->device,
                                         .trouble = o->trouble,
                                         .user = o->user};
    TEC_TRY(tec_memory_open(&e->memories[e->n_memories], &m, e->heap, err));
    e->n_memories++;
    return TEC_OK;
}

enum tec_status tec_engine_open_memories(struct tec_engine *e, int chain, struct tec_error *err)
{
    struct tec_engine_chain *c = &e->chains[chain];
    int nodes[TEC_MAX_MEMORIES], first = e->n_memories;
    int n = tec_memory_nodes(e->options.pipeline, chain, nodes);
    char text[TEC_HASH_TEXT] = ""; /* of random weights the seed says it */
    if (!n)
        return TEC_OK;
    if (!e->options.random)
        TEC_TRY(tec_checkpoint_content(c->of->checkpoint, text, err));
    const char *content = tec_arena_strdup(&e->arena, text);
    if (!content)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a model's name");
    for (int i = 0; i < n; i++)
        TEC_TRY(open_memory(e, c, nodes[i], content, err));
    TEC_TRY(tec_memory_chain_create(&c->memory, e->memories + first, n, e->options.settles, e->heap,
                                    err));
    if (e->options.pipeline->chains[chain].in_frames)
        return TEC_OK;
    c->rooms = TEC_NEW(&e->arena, TEC_MAX_PENDING, struct tec_memory_prompt);
    return c->rooms ? tec_memory_rooms(c->memory, c->rooms, TEC_MAX_PENDING, &e->arena, err)
                    : tec_fail(err, TEC_NO_MEMORY, "no memory for prompts of segments");
}

enum tec_status tec_engine_make_executor(const struct tec_engine *e,
                                         const struct tec_engine_chain *c, struct tec_executor *out,
                                         struct tec_error *err)
{
    *out = e->options.interpret ? tec_executor_interpret(c->plan) : tec_executor_real(c->plan);
    if (!c->memory)
        return TEC_OK;
    TEC_TRY(tec_memory_chain_attach(c->memory, c->plan, err));
    *out = tec_memory_chain_executor(c->memory, out);
    return TEC_OK;
}

void tec_engine_settle(const struct tec_engine *e)
{
    for (int i = 0; i < e->n_chains && e->options.settles; i++)
        if (e->chains[i].memory)
            tec_memory_chain_settle(e->chains[i].memory);
}

/* A prompt that waits changes places with one of its session's, and that with another session's:
 * all of them are given up before the first session takes its memory along. */
void tec_engine_drop_prompts(struct tec_engine *e)
{
    for (int i = 0; i < TEC_MAX_SESSIONS; i++)
        tec_session_drop_prompts(e->sessions[i]);
    for (int i = 0; i < e->n_chains; i++)
        for (int k = 0; e->chains[i].rooms && k < TEC_MAX_PENDING; k++)
            tec_memory_drop(e->chains[i].memory, &e->chains[i].rooms[k]);
}

void tec_engine_close_memories(struct tec_engine *e)
{
    for (int i = 0; i < e->n_chains; i++)
        tec_memory_chain_destroy(e->chains[i].memory);
    for (int i = 0; i < e->n_memories; i++)
        tec_memory_close(e->memories[i]);
}
