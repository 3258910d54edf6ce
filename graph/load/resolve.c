/* resolve.c - names to indices, and what a name may refer to. */
#include "graph/load/loader.h"

#include <string.h>

/* A list of things with names, as seen by references. */
struct scope {
    const char *what; /* "resource" */
    const char *base; /* array */
    size_t stride, name;
    int n;
    const struct tec_decl_entry *entries;
};

static const char *name_at(const struct scope *s, int i)
{
    const char *name;
    memcpy(&name, s->base + (size_t)i * s->stride + s->name, sizeof name);
    return name;
}

static int find(const struct scope *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (name_at(s, i) && strcmp(name_at(s, i), name) == 0)
            return i;
    return -1;
}

#define SCOPE(ld, list, strct, what)                                           \
    {                                                                          \
        what, (const char *)(ld)->pipeline->list, sizeof(struct strct),        \
            offsetof(struct strct, name), (ld)->pipeline->n_##list, (ld)->list \
    }

static void open_scopes(const struct tec_loader *ld, struct scope scopes[TEC_SCOPES])
{
    const struct scope all[TEC_SCOPES] = {SCOPE(ld, models, tec_decl_model, "model"),
                                          SCOPE(ld, inputs, tec_decl_input, "input"),
                                          SCOPE(ld, resources, tec_decl_resource, "resource"),
                                          SCOPE(ld, nodes, tec_decl_node, "node"),
                                          SCOPE(ld, partitions, tec_decl_partition, "partition")};
    memcpy(scopes, all, sizeof all);
}

static void check_names(struct tec_loader *ld, const struct scope *s)
{
    for (int i = 1; i < s->n; i++) {
        int first = name_at(s, i) ? find(s, name_at(s, i)) : i;
        if (first >= i)
            continue;
        struct tec_diagnostic *d =
            tec_diagnostics_add(ld->d, TEC_E020, tec_where_field(ld, &s->entries[i], "name"),
                                "two %ss are called '%s'", s->what, name_at(s, i));
        tec_diagnostics_also(ld->d, d, tec_where_field(ld, &s->entries[first], "name"),
                             "the first one");
    }
}

/* A thing without a valid name was reported; a reference may well mean that one. */
static bool is_complete(const struct tec_loader *ld, const struct scope *s, int scope)
{
    if (ld->torn[scope])
        return false;
    for (int i = 0; i < s->n; i++)
        if (!name_at(s, i))
            return false;
    return true;
}

static int look_up(struct tec_loader *ld, const struct scope *scopes, int want, const char *name,
                   struct tec_where where)
{
    const struct scope *s = &scopes[want];
    int at = name ? find(s, name) : -1;
    if (at >= 0 || !name || !is_complete(ld, s, want))
        return at;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E021, where, "there is no %s called '%s'", s->what, name);
    const char *names[64];
    int n = 0;
    for (int i = 0; i < s->n && n < 64; i++)
        names[n++] = name_at(s, i);
    if (tec_diagnostics_meant(ld->d, d, name, names, n))
        return -1;
    for (int other = 0; other < TEC_SCOPES; other++)
        if (find(&scopes[other], name) >= 0)
            tec_diagnostics_help(ld->d, d, "'%s' is declared, but as %s %s", name,
                                 other == TEC_INPUTS ? "an" : "a", scopes[other].what);
    return -1;
}

struct resolver {
    struct tec_loader *ld;
    struct scope scopes[TEC_SCOPES];
    const struct tec_decl_entry *thing;
};

static void resolve(struct resolver *r, struct tec_ref *ref, int want, const char *field)
{
    ref->index =
        look_up(r->ld, r->scopes, want, ref->name, tec_where_field(r->ld, r->thing, field));
}

static void resolve_reads(struct resolver *r, struct tec_decl_node *node)
{
    const struct tec_decl_entry *list = tec_decl_value_find(r->thing->value, "reads");
    struct tec_ref *items = node->reads.item;
    for (int i = 0; list && i < node->reads.n; i++)
        if (!tec_load_stream(r->ld, &items[i], &list->value->entries[i]))
            items[i].index = look_up(r->ld, r->scopes, TEC_INPUTS, items[i].name,
                                     tec_where_value(r->ld, &list->value->entries[i]));
}

/* A stream is declared by the node that writes it. */
static void resolve_streams(struct resolver *r, struct tec_decl_node *node)
{
    const struct tec_pipeline *p = r->ld->pipeline;
    const struct tec_decl_entry *list = tec_decl_value_find(r->thing->value, "reads");
    const char *names[64];
    int n = 0;
    for (int i = 0; i < p->n_nodes && n < 64; i++)
        if (p->nodes[i].out.stream && p->nodes[i].out.name)
            names[n++] = p->nodes[i].out.name;
    for (int k = 0; list && k < node->streams.n; k++) {
        struct tec_ref *ref = &node->streams.item[k];
        ref->index = -1;
        for (int i = p->n_nodes - 1; ref->name && i >= 0; i--)
            if (p->nodes[i].out.stream && p->nodes[i].out.name &&
                strcmp(p->nodes[i].out.name, ref->name) == 0)
                ref->index = i;
        if (ref->index >= 0 || !ref->name || r->ld->torn[TEC_NODES])
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            r->ld->d, TEC_E021, tec_where_value(r->ld, &list->value->entries[k]),
            "there is no stream called '%s'", ref->name);
        tec_diagnostics_meant(r->ld->d, d, ref->name, names, n);
    }
}

static void resolve_model(struct resolver *r, struct tec_decl_node *node)
{
    const struct tec_pipeline *p = r->ld->pipeline;
    resolve(r, &node->model, TEC_MODELS, "model");
    if (node->kind == TEC_DECL_REMEMBER) /* its memory's, which need not be named */
        return;
    if (node->model.name || p->n_models == 0)
        return;
    if (p->n_models == 1) {
        node->model = (struct tec_ref){p->models[0].name, 0, false};
        return;
    }
    struct tec_diagnostic *d =
        tec_diagnostics_add(r->ld->d, TEC_E012, tec_where_thing(r->ld, r->thing),
                            "missing field 'model': there are %d models", p->n_models);
    tec_diagnostics_help(r->ld->d, d, "say which one '%s' runs: model = \"%s\"",
                         node->name ? node->name : "it",
                         p->models[0].name ? p->models[0].name : "name");
}

static void resolve_guide(struct resolver *r, struct tec_decl_node *node)
{
    const struct tec_decl_entry *guide = tec_decl_value_find(r->thing->value, "guide");
    struct tec_decl_guide *g = &node->guide;
    g->previous.index = g->delays.index = -1;
    if (guide && g->previous.name)
        g->previous.index = look_up(r->ld, r->scopes, TEC_INPUTS, g->previous.name,
                                    tec_where_field(r->ld, guide, "previous"));
    if (guide && g->delays.name)
        g->delays.index = look_up(r->ld, r->scopes, TEC_INPUTS, g->delays.name,
                                  tec_where_field(r->ld, guide, "delay_input"));
}

static void resolve_draft(struct resolver *r, struct tec_decl_node *node)
{
    const struct tec_decl_entry *draft = tec_decl_value_find(r->thing->value, "draft");
    node->draft.model.index = -1;
    if (draft && node->draft.model.name)
        node->draft.model.index = look_up(r->ld, r->scopes, TEC_MODELS, node->draft.model.name,
                                          tec_where_field(r->ld, draft, "model"));
}

static void resolve_node(struct resolver *r, struct tec_decl_node *node)
{
    resolve_model(r, node);
    resolve_reads(r, node);
    resolve_streams(r, node);
    resolve(r, &node->prefix, TEC_INPUTS, "prefix");
    resolve(r, &node->prompt, TEC_INPUTS, "prompt");
    resolve_draft(r, node);
    resolve_guide(r, node);
    resolve(r, &node->writes, TEC_RESOURCES, "writes");
    resolve(r, &node->kv, TEC_RESOURCES, "kv");
    resolve(r, &node->or_kv, TEC_RESOURCES, "or_kv");
    resolve(r, &node->from, TEC_RESOURCES, "from");
    resolve(r, &node->into, TEC_RESOURCES, "into");
    resolve(r, &node->memory, TEC_RESOURCES, "into");
    resolve(r, &node->partition, TEC_PARTITIONS, "partition");
    resolve(r, &node->pack_with, TEC_NODES, "pack_with");
    resolve(r, &node->after, TEC_NODES, "after");
    if (node->out.name && !node->out.stream)
        node->out.buffer = look_up(r->ld, r->scopes, TEC_RESOURCES, node->out.name,
                                   tec_where_field(r->ld, r->thing, "out"));
}

/* The things of the pipeline are const for everybody but the loader. */
void tec_resolve(struct tec_loader *ld)
{
    struct tec_pipeline *p = ld->pipeline;
    struct tec_decl_node *nodes = ld->lists[TEC_NODES];
    struct tec_decl_resource *resources = ld->lists[TEC_RESOURCES];
    struct resolver r = {.ld = ld};
    tec_make_streams(ld);
    open_scopes(ld, r.scopes);
    for (int i = 0; i < TEC_SCOPES; i++)
        check_names(ld, &r.scopes[i]);
    for (int i = 0; i < p->n_resources; i++) {
        r.thing = &ld->resources[i];
        resolve(&r, &resources[i].share_prefix, TEC_RESOURCES, "share_prefix");
        resources[i].model = -1;
    }
    for (int i = 0; i < p->n_nodes; i++) {
        r.thing = &ld->nodes[i];
        resolve_node(&r, &nodes[i]);
    }
    ld->broken = ld->d->n_errors > 0;
}

int tec_pipeline_find_node(const struct tec_pipeline *p, const char *name)
{
    const struct scope nodes = {.base = (const char *)p->nodes,
                                .stride = sizeof *p->nodes,
                                .name = offsetof(struct tec_decl_node, name),
                                .n = p->n_nodes};
    return find(&nodes, name);
}
