/* chains.c - divides a pipeline's nodes into chains: a prefill and the nodes that stand on the keys
 * it writes.
 *
 * Runs at load, once the graph has been checked. A node belongs to the chain of the keys that it
 * reads or adds to, through share_prefix where its keys continue others. Equal prefills are one
 * chain, whatever they write. The chain with the first actions, or the first hard node, comes
 * first, then others that run in every frame, then those that wait for requests, each in the order
 * of their models and of declaration. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

struct divider {
    struct tec_pipeline *p;
    struct tec_decl_node *nodes;
    struct tec_decl_resource *resources;
    struct tec_decl_chain *chains; /* [n_nodes] */
};

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Do actions stand on what a prefill writes, so that frames run it? */
static bool in_frames(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    bool any = false;
    for (int i = 0; i < p->n_nodes; i++)
        any |= p->nodes[i].kind == TEC_DECL_ACTION && !p->nodes[i].culled &&
               p->nodes[i].kv.index >= 0 && p->nodes[i].kv.index == n->writes.index;
    return any;
}

/* What begins a prefill, in one of several ways to write it: a single text is all that changes. */
static struct tec_decl_spawn trigger_of(const struct tec_pipeline *p, const struct tec_decl_node *n,
                                        bool frames)
{
    struct tec_decl_spawn s = tec_pipeline_begins(p, n, n->spawn);
    if (s.kind == TEC_SPAWN_ON_CHANGE && tec_pipeline_reads(p, n, TEC_INPUT_TEXT) == 1)
        s.value = NULL;
    if (s.kind == TEC_SPAWN_EVERY && s.frames == 1 && frames)
        s = (struct tec_decl_spawn){.kind = TEC_SPAWN_NONE};
    return s;
}

static bool same_trigger(const struct tec_pipeline *p, const struct tec_decl_node *a,
                         const struct tec_decl_node *b)
{
    bool frames = in_frames(p, a) || in_frames(p, b);
    const struct tec_decl_spawn x = trigger_of(p, a, frames), y = trigger_of(p, b, frames);
    return x.kind == y.kind && x.frames == y.frames && same_text(x.value, y.value);
}

/* Two prefills are one when everything that their keys and values depend on is equal: model, inputs
 * in order, the text or memory that they come after, template, the trigger (the mask and the
 * picture transform belong to the model and the robot). */
bool tec_pipeline_same_prefill(const struct tec_pipeline *p, const struct tec_decl_node *a,
                               const struct tec_decl_node *b)
{
    bool same = a->model.index == b->model.index && a->reads.n == b->reads.n &&
                a->after.index == b->after.index && a->proposes == b->proposes &&
                same_text(a->template, b->template);
    for (int i = 0; same && i < a->reads.n; i++)
        same = a->reads.item[i].index == b->reads.item[i].index;
    return same && same_trigger(p, a, b);
}

static int add_chain(struct divider *v, int model, int prefill)
{
    int at = v->p->n_chains++;
    v->chains[at] = (struct tec_decl_chain){.model = model, .prefill = prefill};
    return at;
}

/* The chain that a prefill belongs to, if an earlier one began it. Two that write one resource are
 * of one chain, too: the compiler refuses what cannot be one. */
static int begun_by(const struct divider *v, int node)
{
    const struct tec_decl_node *n = &v->nodes[node];
    for (int i = 0; i < node; i++) {
        const struct tec_decl_node *o = &v->nodes[i];
        if (o->kind == TEC_DECL_PREFILL && !o->culled &&
            (tec_pipeline_same_prefill(v->p, o, n) || o->writes.index == n->writes.index))
            return o->chain;
    }
    return -1;
}

static void begin_chains(struct divider *v)
{
    for (int i = 0; i < v->p->n_nodes; i++) {
        struct tec_decl_node *n = &v->nodes[i];
        n->chain = -1;
        if (n->kind != TEC_DECL_PREFILL || n->culled)
            continue;
        n->chain = begun_by(v, i);
        if (n->chain < 0)
            n->chain = add_chain(v, n->model.index, i);
        if (n->writes.index >= 0 && v->resources[n->writes.index].chain < 0)
            v->resources[n->writes.index].chain = n->chain;
    }
}

/* The first chain of a model. One whose nodes have no prefill gets a chain without. */
static int chain_of_model(struct divider *v, int model)
{
    for (int i = 0; i < v->p->n_chains; i++)
        if (v->chains[i].model == model)
            return i;
    return add_chain(v, model, -1);
}

/* The chain that a memory's segments are brought to. */
static int chain_of_memory(const struct divider *v, int memory)
{
    for (int i = 0; i < v->p->n_nodes; i++)
        if (v->nodes[i].kind == TEC_DECL_MEMORY_LOAD && v->nodes[i].from.index == memory &&
            v->nodes[i].chain >= 0)
            return v->nodes[i].chain;
    return 0;
}

static void join_chains(struct divider *v)
{
    for (int i = 0; i < v->p->n_resources; i++)
        if (v->resources[i].share_prefix.index >= 0)
            v->resources[i].chain = v->resources[v->resources[i].share_prefix.index].chain;
    for (int i = 0; i < v->p->n_nodes; i++) {
        struct tec_decl_node *n = &v->nodes[i];
        int keys = n->kv.index >= 0 ? n->kv.index : n->into.index;
        if (n->chain >= 0 || n->culled || n->kind == TEC_DECL_REMEMBER)
            continue;
        if (keys >= 0)
            n->chain = v->resources[keys].chain;
        if (n->chain < 0)
            n->chain = chain_of_model(v, n->model.index);
        if (keys >= 0 && v->resources[keys].chain < 0)
            v->resources[keys].chain = n->chain;
    }
    for (int i = 0; i < v->p->n_nodes; i++)
        if (v->nodes[i].kind == TEC_DECL_REMEMBER)
            v->nodes[i].chain = chain_of_memory(v, v->nodes[i].memory.index);
}

static int first_chain(const struct tec_pipeline *p)
{
    const struct tec_decl_node *first = tec_pipeline_first(p);
    return first ? first->chain : 0;
}

/* Mark the chains that run in every frame: those with actions or a hard node but a text's. */
static void mark_frames(struct divider *v, int first)
{
    v->chains[first].in_frames = true;
    for (int i = 0; i < v->p->n_nodes; i++) {
        const struct tec_decl_node *n = &v->nodes[i];
        bool text = tec_decl_makes_text(n);
        bool ring = text && n->kv.index >= 0 && v->resources[n->kv.index].kind == TEC_RESOURCE_RING;
        bool hard = !text && n->deadline.kind == TEC_DEADLINE_HARD;
        if (!n->culled && n->chain >= 0 && (n->kind == TEC_DECL_ACTION || ring || hard))
            v->chains[n->chain].in_frames = true;
    }
}

/* And those whose texts a prefill in frames waits for. */
static void mark_awaited(struct divider *v)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < v->p->n_nodes; i++) {
            const struct tec_decl_node *n = &v->nodes[i], *text = tec_pipeline_waits_for(v->p, n);
            if (!text || n->kind != TEC_DECL_PREFILL || n->chain < 0 || text->chain < 0 ||
                !v->chains[n->chain].in_frames)
                continue;
            changed |= !v->chains[text->chain].in_frames;
            v->chains[text->chain].in_frames = true;
        }
    }
}

/* Does chain a come before chain b, when `first` is the first of all? */
static bool comes_before(const struct divider *v, int a, int b, int first)
{
    if (a == first || b == first)
        return a == first && b != first;
    if (v->chains[a].in_frames != v->chains[b].in_frames)
        return v->chains[a].in_frames;
    int x = v->chains[a].model, y = v->chains[b].model;
    return x < y || (x == y && a < b);
}

static void order_chains(struct divider *v, struct tec_decl_chain *ordered, int *place)
{
    int n = v->p->n_chains, first = first_chain(v->p);
    mark_frames(v, first);
    mark_awaited(v);
    for (int i = 0; i < n; i++) {
        place[i] = 0;
        for (int j = 0; j < n; j++)
            place[i] += comes_before(v, j, i, first);
        ordered[place[i]] = v->chains[i];
    }
    for (int i = 0; i < v->p->n_nodes; i++)
        if (v->nodes[i].chain >= 0)
            v->nodes[i].chain = place[v->nodes[i].chain];
    for (int i = 0; i < v->p->n_resources; i++)
        if (v->resources[i].chain >= 0)
            v->resources[i].chain = place[v->resources[i].chain];
    v->p->chains = ordered;
}

static void name_chains(const struct tec_pipeline *p, struct tec_decl_chain *chains)
{
    for (int i = 0; i < p->n_chains; i++) {
        int of_model = 0;
        for (int k = 0; k < p->n_chains; k++)
            of_model += chains[k].model == chains[i].model;
        chains[i].name = of_model > 1 && chains[i].prefill >= 0 ? p->nodes[chains[i].prefill].name
                                                                : p->models[chains[i].model].name;
    }
}

void tec_divide_chains(struct tec_loader *ld)
{
    struct tec_pipeline *p = ld->pipeline;
    struct divider v = {
        .p = p, .nodes = ld->lists[TEC_NODES], .resources = ld->lists[TEC_RESOURCES]};
    size_t n = (size_t)p->n_nodes + 1;
    struct tec_decl_chain *ordered = TEC_NEW(ld->arena, n, struct tec_decl_chain);
    int *place = TEC_NEW(ld->scratch, n, int);
    v.chains = TEC_NEW(ld->scratch, n, struct tec_decl_chain);
    if (!tec_loader_has(ld, ordered && place && v.chains))
        return;
    for (int i = 0; i < p->n_resources; i++)
        v.resources[i].chain = -1;
    begin_chains(&v);
    join_chains(&v);
    order_chains(&v, ordered, place);
    name_chains(p, ordered);
    tec_bind_robots(ld, ordered);
}
