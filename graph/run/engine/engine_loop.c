/* engine_loop.c - translates a pipeline's nodes into the options of the frame loop: decoders,
 * topology, models.
 *
 * Runs at load, except `stops`: the frame thread calls it to search an unfinished answer for its
 * stop texts. It decodes into an arena that was sized here for the longest answer, so it allocates
 * nothing. */
#include "graph/load/pipeline_texts.h"
#include "graph/run/engine/engine_own.h"

#include <math.h>
#include <string.h>

/* The declaration of a node by its name. */
static const struct tec_decl_node *decl_of(const struct tec_engine *e, const char *name)
{
    const struct tec_pipeline *p = e->options.pipeline;
    return &p->nodes[tec_pipeline_find_node(p, name)];
}

static void add_list(struct tec_decoder *d, const struct tec_choice *choice)
{
    const struct tec_decl_node *n = choice->node;
    d->chooses = n->kind == TEC_DECL_DECODE;
    d->root = choice->root;
    d->tree = n->kind == TEC_DECL_SCORE ? &choice->tree : NULL;
    d->end = n->ends;
    d->mean = n->mean;
}

/* Which of the streams that are read a node writes; -1 = none of them. */
static int stream_of(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    for (int i = 0; i < p->n_streams; i++)
        if (p->inputs[p->n_inputs + i].writer == 1 + (int)(n - p->nodes))
            return i;
    return -1;
}

/* 1 + which of the texts that a chain's prefill reads has the name; 0 = none, or no name. */
static int text_named(const struct tec_pipeline *p, int chain, const char *name)
{
    int at[TEC_MAX_TEXTS], n = tec_pipeline_texts(p, chain, at);
    for (int i = 0; name && i < n; i++)
        if (strcmp(p->inputs[at[i]].name, name) == 0)
            return 1 + i;
    return 0;
}

/* The texts that the last action of the list acts on, and that which it waits for. */
static void add_texts(struct tec_loop_options *l, const struct tec_engine *e,
                      const struct tec_decl_node *n)
{
    const struct tec_pipeline *p = e->options.pipeline;
    struct tec_action *a = &l->actions[l->n_actions - 1];
    for (int d = 0; d < l->n_decoders; d++) {
        const struct tec_decl_node *text = decl_of(e, l->decoders[d].name);
        a->texts |= tec_pipeline_acts_on(p, n, text) ? 1U << d : 0U;
        a->waits_for = tec_pipeline_waits_for(p, n) == text ? 1 + d : a->waits_for;
    }
}

/* Rows of an action's chunk that the robot carries out a frame. */
static int carried(const struct tec_engine *e, int action)
{
    if (!e->session)
        return 0;
    return e->options.actions > 0 ? e->options.actions
                                  : tec_session_executed(tec_engine_session(e, action));
}

static void list_actions(struct tec_loop_options *l, const struct tec_engine *e)
{
    const struct tec_decl_node *n;
    int at[TEC_MAX_CHAINS] = {0};
    while (l->n_actions < TEC_MAX_ACTIONS &&
           (n = tec_pipeline_action(e->options.pipeline, l->n_actions))) {
        int node = tec_topology_find(&e->topology, n->name), action = l->n_actions++;
        l->actions[action] = (struct tec_action){
            .name = n->name,
            .node = node,
            .chain = n->chain,
            .at = at[n->chain]++,
            .deadline_ns = e->topology.nodes[node].deadline_us * 1000,
            .every = tec_pipeline_acts_every(e->options.pipeline, n),
            .with_prefix = n->kind == TEC_DECL_ACTION && n->spawn.kind == TEC_SPAWN_ON_CHANGE,
            .prev = n->kind == TEC_DECL_ACTION && n->kv.prev,
            .or_prefix = n->or_kv.index >= 0,
            .rows = carried(e, action)};
        add_texts(l, e, n);
    }
}

static void list_decoders(struct tec_loop_options *l, const struct tec_engine *e)
{
    const struct tec_pipeline *p = e->options.pipeline;
    const struct tec_topology *t = &e->topology;
    for (int i = 0; i < t->n_nodes; i++) {
        if (!tec_topology_decodes(t, i))
            continue;
        const struct tec_decl_node *n = decl_of(e, t->nodes[i].name);
        struct tec_decoder *d = &l->decoders[l->n_decoders++];
        d->name = n->name;
        d->chain = n->chain;
        d->node = i;
        const struct tec_decl_spawn spawn = tec_pipeline_spawn(p, n);
        d->every = spawn.kind == TEC_SPAWN_EVERY ? spawn.frames : 0;
        d->on_change = spawn.kind == TEC_SPAWN_ON_CHANGE;
        d->on_text = text_named(p, n->chain, spawn.value);
        d->supersede = n->supersede;
        d->awaited = tec_pipeline_awaited(p, n);
        d->behind = tec_pipeline_behind(p, n);
        d->hard = d->awaited && n->deadline.kind == TEC_DEADLINE_HARD;
        d->keeps_keys = tec_pipeline_keeps_keys(p, n);
        d->keeps_slot = d->awaited || (n->kind == TEC_DECL_DECODE &&
                                       p->resources[n->kv.index].kind == TEC_RESOURCE_FRAME);
        const struct tec_decl_slots slots = tec_pipeline_slots(p, n->chain, n);
        d->first_slot = slots.first;
        d->slots = slots.n;
        if (p->resources[n->kv.index].kind == TEC_RESOURCE_REQUESTS)
            d->kv = p->resources[n->kv.index].name;
        d->stream = 1 + stream_of(p, n);
        d->prompt = 1 + tec_pipeline_prompt_of(p, n);
        int draft = tec_pipeline_draft(p, n);
        d->draft = 1 + draft;
        d->draft_tokens = n->draft.tokens;
        d->max_tokens = n->max_tokens;
        if (n->stops.n && n->stops.item[0][0])
            d->stops = n->stops;
        d->sampling = (struct tec_sampling){
            .temperature = (float)n->temperature, .top_p = (float)n->top_p, .top_k = n->top_k};
        const struct tec_choice *choice = tec_choices_of(&e->chains[d->chain].choices, n);
        if (choice)
            add_list(d, choice);
        d->deadline_us = t->nodes[i].deadline_us;
        d->sheds = n->deadline.on_miss == TEC_MISS_SHED;
    }
}

/* True if the decoded tokens contain one of the stop texts. The arena is sized for the longest
 * answer, so nothing is allocated. */
static bool stops(void *self, int decoder, const int *tokens, int n)
{
    struct tec_engine *e = self;
    const struct tec_decoder *d = &tec_loop_settings(e->loop)->decoders[decoder];
    const struct tec_tokenizer *tokenizer = e->chains[d->chain].of->tokenizer;
    struct tec_arena_mark mark = tec_arena_mark(&e->reading);
    char *text = NULL;
    size_t bytes = 0;
    bool found = false;
    if (tokenizer && tec_tokenizer_decode(tokenizer, tokens, (size_t)n, true, &e->reading, &text,
                                          &bytes, NULL) == TEC_OK)
        for (int i = 0; !found && i < d->stops.n; i++)
            found = memmem(text, bytes, d->stops.item[i], strlen(d->stops.item[i])) != NULL;
    tec_arena_rewind(&e->reading, mark);
    return found;
}

/* Install `stops` and its arena if any decoder has stop texts. */
static enum tec_status read_stops(struct tec_engine *e, struct tec_loop_options *l,
                                  struct tec_error *err)
{
    enum { PER_TOKEN = 64 };
    bool any = false;
    int longest = 0;
    for (int i = 0; i < l->n_decoders; i++) {
        const struct tec_decoder *d = &l->decoders[i];
        any |= d->stops.n && e->chains[d->chain].of->tokenizer;
        longest = d->max_tokens > longest ? d->max_tokens : longest;
    }
    if (!any)
        return TEC_OK;
    struct tec_arena_mark mark = tec_arena_mark(&e->reading);
    size_t bytes = ((size_t)longest + 1) * PER_TOKEN;
    if (!tec_arena_push(&e->reading, bytes, 1, 16))
        return tec_fail(err, TEC_NO_MEMORY, "no memory to read answers");
    tec_arena_rewind(&e->reading, mark);
    l->stops = stops;
    l->stops_self = e;
    return TEC_OK;
}

/* What was said goes to the memories of what a remember node writes into. */
static void said(void *self, const struct tec_text_reader *reader, int session, const int *tokens,
                 int n)
{
    struct tec_engine *e = self;
    int chain = tec_loop_settings(e->loop)->decoders[reader->decoder].chain;
    for (int i = 0; i < e->n_memories; i++)
        tec_memory_said(tec_memory_of(e->memories[i], e->n_sessions > 1 ? session : 0), reader->at,
                        e->chains[chain].of->tokenizer, tokens, n);
}

/* The decoders whose stream a remember node reads. */
static void add_readers(struct tec_engine *e, struct tec_loop_options *l,
                        struct tec_text_reader *readers, int node)
{
    const struct tec_pipeline *p = e->options.pipeline;
    const struct tec_decl_node *n = decl_of(e, e->topology.nodes[node].name);
    for (int i = 0; n->kind == TEC_DECL_REMEMBER && i < l->n_decoders; i++) {
        const struct tec_decl_node *from = decl_of(e, l->decoders[i].name);
        bool reads = false;
        for (int k = 0; k < n->streams.n; k++)
            reads |= from->out.stream && strcmp(from->out.name, n->streams.item[k].name) == 0;
        if (reads)
            readers[l->n_readers++] =
                (struct tec_text_reader){.decoder = i,
                                         .node = node,
                                         .at = (int)(n - p->nodes),
                                         .into = p->resources[n->memory.index].name};
    }
}

/* List who reads what is said. A simulation has no memory: there it is told, and nobody hears. */
static enum tec_status list_readers(struct tec_engine *e, struct tec_loop_options *l,
                                    struct tec_error *err)
{
    size_t most = (size_t)e->topology.n_nodes * (size_t)l->n_decoders + 1;
    struct tec_text_reader *readers = TEC_NEW(&e->arena, most, struct tec_text_reader);
    if (!readers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for readers of texts");
    for (int i = 0; i < e->topology.n_nodes; i++)
        add_readers(e, l, readers, i);
    l->readers = readers;
    l->said = e->n_memories ? said : NULL;
    l->said_self = e;
    return TEC_OK;
}

/* Set the chain of nodes in the topology, and the slices of a prefill that is not in frames. */
static void add_topology(struct tec_engine *e, int chain)
{
    const struct tec_pipeline *p = e->options.pipeline;
    struct tec_plan *plan = e->chains[chain].plan;
    for (int i = 0; i < e->topology.n_nodes; i++) {
        const struct tec_decl_node *n = decl_of(e, e->topology.nodes[i].name);
        if (n->chain != chain)
            continue;
        e->topology.nodes[i].model = chain;
        if (plan->spec.secondary && n->kind == TEC_DECL_PREFILL)
            e->topology.nodes[i].slices = tec_part_slices(tec_plan_part(plan, TEC_PART_PREFIX, 0));
    }
    e->topology.slots += plan->spec.unread ? 0 : plan->spec.request_slots;
    for (int i = 0; i < p->n_nodes; i++) /* of finished texts whose keys stay */
        if (p->nodes[i].chain == chain && tec_pipeline_keeps_keys(p, &p->nodes[i]))
            e->topology.slots -= p->frame.sessions;
}

/* The first node of a kind in a chain; -1 = none. */
static int first_node(const struct tec_engine *e, int chain, const char *kind)
{
    for (int i = 0; i < e->topology.n_nodes; i++)
        if (e->topology.nodes[i].model == chain && strcmp(e->topology.nodes[i].kind, kind) == 0)
            return i;
    return -1;
}

static const char *resource_of(const struct tec_engine *e, int chain, enum tec_resource_kind kind)
{
    const struct tec_pipeline *p = e->options.pipeline;
    for (int i = 0; i < p->n_resources; i++)
        if (p->resources[i].kind == kind && p->resources[i].chain == chain)
            return p->resources[i].name;
    return NULL;
}

/* The launches of the first ring's plan have plain names, those of another's also its first ring's
 * name. */
static const char *launch_name(struct tec_engine *e, int chain, const char *word)
{
    const struct tec_pipeline *p = e->options.pipeline;
    int host = e->chains[chain].joins ? e->chains[chain].joins - 1 : chain;
    const struct tec_decl_node *ring = tec_pipeline_ring_of(p, host);
    if (e->chains[host].plan == e->chains[tec_pipeline_ring(p, 0)->chain].plan)
        return word;
    const char *name =
        tec_arena_printf(&e->arena, "%s.%s", word, p->resources[ring->kv.index].name);
    return name ? name : word;
}

static void add_chain(struct tec_loop_options *l, struct tec_engine *e, int chain,
                      const struct tec_executor *executor)
{
    const struct tec_pipeline *p = e->options.pipeline;
    const struct tec_decl_node *ring = tec_pipeline_ring_of(p, chain);
    const struct tec_decl_spawn trigger = tec_pipeline_trigger(p, chain);
    struct tec_loop_chain *c = &l->chains[l->n_chains++];
    *c = (struct tec_loop_chain){.in_frames = !e->chains[chain].plan->spec.secondary,
                                 .every = tec_pipeline_every(p, chain),
                                 .on_change = trigger.kind == TEC_SPAWN_ON_CHANGE,
                                 .on_text = text_named(p, chain, trigger.value),
                                 .holds = tec_pipeline_holds(p, chain),
                                 .plan = e->chains[chain].plan,
                                 .executor = *executor,
                                 .rooms = e->chains[chain].rooms,
                                 .proposes = e->chains[chain].spec.unread > 0,
                                 .prefill_node = first_node(e, chain, "prefill")};
    double due_ms = tec_pipeline_due(p, chain);
    int texts[TEC_MAX_TEXTS], heard = tec_pipeline_heard(p, chain);
    if (heard >= 0 && tec_pipeline_texts(p, chain, texts) > heard) {
        c->hears = 1 + texts[heard] - p->n_inputs;
        c->hears_at = heard;
    }
    c->due_ns = isfinite(due_ms) ? llround(due_ms * 1000.0) * 1000 : 0;
    c->depth = tec_pipeline_depth(p, chain);
    if (ring) {
        c->ring = p->resources[ring->kv.index].name;
        c->flushes = p->resources[ring->kv.index].on_change == TEC_CHANGE_FLUSH;
        c->ring_at = e->chains[chain].at;
        c->packed = launch_name(e, chain, "packed");
        c->alone = launch_name(e, chain, "decode");
    }
    if (e->n_chains == 1)
        return;
    c->kv_frame = c->ring ? c->ring : resource_of(e, chain, TEC_RESOURCE_FRAME);
    c->kv_requests = resource_of(e, chain, TEC_RESOURCE_REQUESTS);
}

/* What launches cost, as a table says it: those of frames, and of segments to be kept. */
static enum tec_status take_costs(struct tec_engine *e, const struct tec_cost_table *costs,
                                  struct tec_error *err)
{
    const struct tec_pipeline *p = e->options.pipeline;
    tec_loop_prior(e->loop, costs);
    for (int i = 0; i < p->n_nodes * e->n_memories; i++) {
        const struct tec_decl_node *n = &p->nodes[i / e->n_memories];
        struct tec_memory *m = e->memories[i % e->n_memories];
        const struct tec_decl_node *load = tec_memory_node(m);
        if (n->kind != TEC_DECL_REMEMBER || n->culled || n->memory.index != load->from.index)
            continue;
        const char *name = tec_pipeline_memory_of(p, load, n->name, &e->arena);
        if (!name)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for names");
        const struct tec_cost_row *row = tec_costs_table_row(costs, name, 0);
        if (row)
            tec_memory_prior(m, row->point, row->p99);
    }
    return TEC_OK;
}

enum tec_status tec_engine_make_loop(struct tec_engine *e, const struct tec_executor *executors,
                                     struct tec_error *err)
{
    const struct tec_engine_options *o = &e->options;
    const struct tec_pipeline *p = o->pipeline;
    size_t n = (size_t)(p->n_inputs + p->n_resources + p->n_partitions) + 1;
    const char **names = TEC_NEW(&e->arena, n, const char *);
    if (!names)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for names");
    TEC_TRY(tec_engine_make_edges(e, TEC_MAX_TICKING, err));
    tec_engine_topology(&e->topology, p, &e->plan->spec, e->model, names);
    e->topology.slots = 0;
    for (int i = 0; i < e->n_chains; i++)
        add_topology(e, i);
    struct tec_loop_options l = {
        .topology = &e->topology,
        .planner = tec_default_planner,
        .period_ns = o->saturated ? 0 : e->topology.period_us * 1000,
        .gather_ns = p->frame.sessions > 1 ? (int64_t)(p->frame.gather_ms * 1e6 + 0.5) : 0,
        .released = o->released,
        .lost = o->lost,
        .user = o->user,
        .events = o->events,
        .edges = e->edges,
        .wanted = o->wanted,
        .wanted_self = o->wanted_self,
        .others = o->others};
    for (int i = 0; i < e->n_chains; i++)
        add_chain(&l, e, i, &executors[i]);
    list_decoders(&l, e);
    list_actions(&l, e);
    for (int i = 0; i < l.n_decoders; i++)
        l.decoders[i].sampling.seed = o->seed;
    TEC_TRY(list_readers(e, &l, err));
    TEC_TRY(read_stops(e, &l, err));
    TEC_TRY(tec_loop_create(&e->loop, &l, e->heap, err));
    return o->costs ? take_costs(e, o->costs, err) : TEC_OK;
}
