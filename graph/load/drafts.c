/* drafts.c - speculation: a decode node whose tokens another model proposes.
 *
 * The model that proposes reads the prompt of the decode node's prefill by a prefill of its own.
 * No file writes that one: it is added here, behind the file's nodes, with a kv.frame, so that it
 * is a chain like any other to the compiler, to costs, to policies and to drawings. The JSON form
 * leaves both out, as the field `draft` says all of them. Decode nodes over one prefix that have
 * one model propose share its prefill. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

static bool over_ring(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    return n->kv.index >= 0 && p->resources[n->kv.index].kind == TEC_RESOURCE_RING;
}

void tec_check_drafts(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    int nodes = p->n_nodes;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        nodes += n->draft.tokens > 0;
        if (n->draft.tokens > 0 && nodes > TEC_MAX_NODES)
            tec_diagnostics_add(ld->d, TEC_E011, tec_where_field(ld, &ld->nodes[i], "draft"),
                                "%d nodes and the drafts up to here are %d, the most is %d",
                                p->n_nodes, nodes, TEC_MAX_NODES);
        if (n->draft.tokens == 0 || !over_ring(p, n))
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E024, tec_where_field(ld, &ld->nodes[i], "draft"),
            "'%s' decodes ring '%s', one token of each sequence in a forward: nothing can be "
            "proposed",
            n->name ? n->name : "decode", n->kv.name);
        tec_diagnostics_help(ld->d, d, "leave draft out, or decode in a kv.requests");
    }
}

/* The node that a draft's prefill is added for, if it has one to read with. */
static bool proposed_to(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    return n->draft.tokens > 0 && n->draft.model.index >= 0 && !n->culled && !over_ring(p, n) &&
           tec_pipeline_writer(p, tec_pipeline_prefix(p, n));
}

/* The node that was added for a decode node, or for another one over the same prefix. */
static int added_for(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    for (int i = p->n_nodes - p->n_drafts; i < p->n_nodes; i++)
        if (p->nodes[i].model.index == n->draft.model.index &&
            tec_pipeline_prefix(p, &p->nodes[p->nodes[i].proposes - 1]) ==
                tec_pipeline_prefix(p, n))
            return i;
    return -1;
}

int tec_pipeline_draft(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    int added = n->draft.tokens > 0 && !n->culled ? added_for(p, n) : -1;
    return added < 0 ? -1 : p->nodes[added].chain;
}

bool tec_pipeline_proposes_first(const struct tec_pipeline *p, int chain)
{
    bool first = false;
    for (int i = 0; i < p->n_nodes; i++)
        first |=
            tec_pipeline_draft(p, &p->nodes[i]) == chain && tec_pipeline_awaited(p, &p->nodes[i]);
    return first && chain >= 0;
}

int tec_pipeline_follows(const struct tec_pipeline *p, int chain)
{
    int text = p->chains[chain].prefill < 0 ? 0 : p->nodes[p->chains[chain].prefill].proposes;
    int of = text ? p->nodes[text - 1].chain : -1;
    return of >= 0 && tec_pipeline_remembers(p, of) ? of : -1;
}

/* The lists of a pipeline with room for what is added; the values behind them are kept beside. */
struct lists {
    struct tec_decl_node *nodes;
    struct tec_decl_resource *resources;
    struct tec_decl_entry *node_entries, *resource_entries;
    int *order;
};

static void *grown(struct tec_arena *arena, const void *list, int n, size_t size)
{
    char *copy = tec_arena_push(arena, 2 * (size_t)n + 1, size, 16);
    if (copy && n > 0)
        memcpy(copy, list, (size_t)n * size);
    return copy;
}

/* There are at most as many drafts as nodes. */
static bool grow(struct tec_loader *ld, struct lists *l)
{
    struct tec_pipeline *p = ld->pipeline;
    int most = p->n_nodes > p->n_resources ? p->n_nodes : p->n_resources;
    l->nodes = grown(ld->arena, p->nodes, p->n_nodes, sizeof *l->nodes);
    l->resources = tec_arena_push(ld->arena, 2 * (size_t)most + 1, sizeof *l->resources, 16);
    l->node_entries = grown(ld->scratch, ld->nodes, p->n_nodes, sizeof *l->node_entries);
    l->resource_entries = TEC_NEW(ld->scratch, 2 * (size_t)most + 1, struct tec_decl_entry);
    l->order = grown(ld->arena, p->order, p->n_nodes, sizeof *l->order);
    if (!l->nodes || !l->resources || !l->node_entries || !l->resource_entries || !l->order)
        return false;
    size_t n = (size_t)p->n_resources;
    memcpy(l->resources, p->resources, n * sizeof *l->resources);
    memcpy(l->resource_entries, ld->resources, n * sizeof *l->resource_entries);
    p->nodes = ld->lists[TEC_NODES] = l->nodes;
    p->resources = ld->lists[TEC_RESOURCES] = l->resources;
    p->order = l->order;
    ld->nodes = l->node_entries;
    ld->resources = l->resource_entries;
    return true;
}

/* The prefill that reads for the draft of node `at`: everything as the node's own prefill has it,
 * but the model, and where it writes. */
static void add(struct tec_loader *ld, struct lists *l, int at)
{
    struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[at];
    const struct tec_decl_node *reader = tec_pipeline_writer(p, tec_pipeline_prefix(p, n));
    const struct tec_decl_entry *field = tec_decl_value_find(l->node_entries[at].value, "draft");
    const char *name = tec_arena_printf(ld->arena, "%s.draft", n->name ? n->name : "decode");
    struct tec_decl_resource *keys = &l->resources[p->n_resources];
    struct tec_decl_node *added = &l->nodes[p->n_nodes];
    *keys = p->resources[reader->writes.index];
    if (keys->kind == TEC_RESOURCE_RING) { /* of one sequence, which is not decoded in the ring */
        keys->kind = TEC_RESOURCE_FRAME;
        keys->tokens -= keys->stages;
        keys->stages = 0;
    }
    keys->name = name;
    keys->where = n->draft.where;
    keys->model = n->draft.model.index;
    *added = *reader;
    added->name = name;
    added->where = n->draft.where;
    added->model = n->draft.model;
    added->writes = (struct tec_ref){.name = name, .index = p->n_resources};
    added->spawn = (struct tec_decl_spawn){.kind = TEC_SPAWN_NONE};
    added->deadline = (struct tec_decl_deadline){.kind = TEC_DEADLINE_NONE};
    added->partition = added->after = (struct tec_ref){.index = -1};
    added->when_policy = added->root = added->culled = false;
    added->proposes = at + 1;
    l->order[p->n_nodes] = p->n_nodes;
    if (field) {
        l->node_entries[p->n_nodes] = *field;
        l->resource_entries[p->n_resources] = *field;
    } else {
        l->node_entries[p->n_nodes] = l->node_entries[at];
        l->resource_entries[p->n_resources] = l->node_entries[at];
    }
    ld->out_of_memory |= !name;
    p->n_nodes++;
    p->n_resources++;
    p->n_drafts++;
}

void tec_add_drafts(struct tec_loader *ld)
{
    struct tec_pipeline *p = ld->pipeline;
    struct lists lists;
    int n = p->n_nodes;
    bool any = false;
    for (int i = 0; i < n; i++)
        any |= proposed_to(p, &p->nodes[i]);
    if (!any || !tec_loader_has(ld, grow(ld, &lists)))
        return;
    for (int i = 0; i < n; i++)
        if (proposed_to(p, &p->nodes[i]) && added_for(p, &p->nodes[i]) < 0)
            add(ld, &lists, i);
}
