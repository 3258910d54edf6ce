/* check_remember.c - a remember node's text fits a segment of the memory that it writes into. */
#include "graph/load/loader.h"
#include "graph/memory/log.h"

#include <string.h>

const char *tec_pipeline_key(const struct tec_decl_node *n)
{
    return n->key ? n->key : n->name;
}

/* The first node that brings a memory to a prompt of a model (-1: of any); NULL = none. */
static const struct tec_decl_node *loader_of(const struct tec_pipeline *p, int memory, int model)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == TEC_DECL_MEMORY_LOAD && p->nodes[i].from.index == memory &&
            (model < 0 || p->nodes[i].model.index == model))
            return &p->nodes[i];
    return NULL;
}

static void check_key(struct tec_loader *ld, int at)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[at];
    const char *key = tec_pipeline_key(n);
    size_t bytes = key ? strlen(key) : 1;
    if (bytes < 1 || bytes > TEC_LOG_MAX_ID)
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_field(ld, &ld->nodes[at], "key"),
                            "a key of %zu bytes; 1 to %d are possible", bytes, TEC_LOG_MAX_ID);
    for (int i = 0; key && i < at; i++) {
        const struct tec_decl_node *other = &p->nodes[i];
        if (other->kind != TEC_DECL_REMEMBER || other->memory.index != n->memory.index ||
            !tec_pipeline_key(other) || strcmp(tec_pipeline_key(other), key) != 0)
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E022, tec_where_thing(ld, &ld->nodes[at]),
            "'%s' and '%s' both write segment '%s' of '%s'", other->name ? other->name : "?",
            n->name ? n->name : "?", key, n->memory.name);
        tec_diagnostics_also(ld->d, d, other->where, "the other writer");
        tec_diagnostics_help(ld->d, d, "give each a key of its own, or one node both streams");
        return;
    }
}

/* An answer that no segment can hold is lost whenever it is long. */
static void check_length(struct tec_loader *ld, int at, const struct tec_decl_node *loads)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[at];
    int input = loads->reads.n ? loads->reads.item[0].index : -1;
    for (int i = 0; input >= 0 && i < n->streams.n; i++) {
        int from = n->streams.item[i].index, most = p->inputs[input].tokens_each;
        if (from < 0 || most < 1 || p->nodes[from].max_tokens <= most)
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_W112, tec_where_field(ld, &ld->nodes[at], "reads"),
            "'%s' has up to %d tokens, a segment of '%s' at most %d: a longer one is not "
            "remembered",
            n->streams.item[i].name, p->nodes[from].max_tokens, n->memory.name, most);
        tec_diagnostics_help(ld->d, d, "raise tokens_each of '%s' or lower max_tokens of '%s'",
                             p->inputs[input].name ? p->inputs[input].name : "?",
                             p->nodes[from].name ? p->nodes[from].name : "?");
    }
}

void tec_check_remember(struct tec_loader *ld, int node)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[node];
    if (n->kind != TEC_DECL_REMEMBER || n->memory.index < 0 ||
        p->resources[n->memory.index].kind != TEC_RESOURCE_SEGMENTS)
        return;
    const struct tec_decl_node *loads = loader_of(p, n->memory.index, -1);
    check_key(ld, node);
    if (loads && !loader_of(p, n->memory.index, n->model.index))
        tec_diagnostics_add(ld->d, TEC_E024, tec_where_field(ld, &ld->nodes[node], "into"),
                            "'%s' runs model '%s', but '%s' holds keys of model '%s'",
                            n->name ? n->name : "?", n->model.name, n->memory.name,
                            loads->model.name);
    if (loads) {
        check_length(ld, node, loads);
        return;
    }
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E024, tec_where_field(ld, &ld->nodes[node], "into"),
        "nothing recalls what '%s' puts into '%s'", n->name ? n->name : "?", n->memory.name);
    tec_diagnostics_help(ld->d, d, "add a memory_load { from = \"%s\" }", n->memory.name);
}
