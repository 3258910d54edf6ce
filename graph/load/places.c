/* places.c - keeps where fields are written that are judged after the load: an overlay or --set may
 * have written them, not the base file. */
#include "graph/load/loader.h"

#include <string.h>

struct tec_where tec_decl_place(const struct tec_decl_places *places, const char *field,
                                struct tec_where whole)
{
    for (int i = 0; i < places->n; i++)
        if (strcmp(places->item[i].name, field) == 0)
            return places->item[i].where;
    return whole;
}

/* Of all fields that a table was given; nothing without a table. */
static void keep(struct tec_loader *ld, struct tec_decl_places *to, const struct tec_decl_entry *of)
{
    const struct tec_decl_value *table = of ? of->value : NULL;
    int n = table ? table->n : 0;
    struct tec_decl_place *item = n ? TEC_NEW(ld->arena, (size_t)n, struct tec_decl_place) : NULL;
    if (!n || !tec_loader_has(ld, item))
        return;
    for (int i = 0; i < n; i++)
        if (table->entries[i].key)
            item[to->n++] = (struct tec_decl_place){table->entries[i].key,
                                                    tec_where_value(ld, &table->entries[i])};
    to->item = item;
}

static const struct tec_decl_entry *field_of(const struct tec_decl_entry *thing, const char *name)
{
    return thing ? tec_decl_value_find(thing->value, name) : NULL;
}

static void keep_models(struct tec_loader *ld)
{
    struct tec_decl_model *models = ld->lists[TEC_MODELS];
    for (int i = 0; i < ld->pipeline->n_models; i++) {
        models[i].where_arch = tec_where_field(ld, &ld->models[i], "arch");
        models[i].where_weights = tec_where_field(ld, &ld->models[i], "weights");
        models[i].where_adapter = tec_where_field(ld, &ld->models[i], "adapter");
        keep(ld, &models[i].places, &ld->models[i]);
    }
}

static void keep_inputs(struct tec_loader *ld)
{
    struct tec_decl_input *inputs = ld->lists[TEC_INPUTS];
    for (int i = 0; i < ld->pipeline->n_inputs; i++) {
        inputs[i].where_shape = tec_where_field(ld, &ld->inputs[i], "shape");
        keep(ld, &inputs[i].places, &ld->inputs[i]);
    }
}

static void keep_resources(struct tec_loader *ld)
{
    struct tec_decl_resource *resources = ld->lists[TEC_RESOURCES];
    for (int i = 0; i < ld->pipeline->n_resources; i++) {
        struct tec_decl_resource *r = &resources[i];
        bool buffer = r->kind == TEC_RESOURCE_BUFFER;
        r->where_size = tec_where_field(ld, &ld->resources[i], buffer ? "shape" : "tokens");
        r->where_encoder = tec_where_field(ld, &ld->resources[i], "encoder");
        r->where_store = tec_where_field(ld, &ld->resources[i], "store");
        keep(ld, &r->places, &ld->resources[i]);
        keep(ld, &r->tiers.places, field_of(&ld->resources[i], "tiers"));
    }
}

static void keep_nodes(struct tec_loader *ld)
{
    struct tec_decl_node *nodes = ld->lists[TEC_NODES];
    for (int i = 0; i < ld->pipeline->n_nodes; i++) {
        nodes[i].where_template = tec_where_field(ld, &ld->nodes[i], "template");
        nodes[i].where_steps = tec_where_field(ld, &ld->nodes[i], "steps");
        keep(ld, &nodes[i].deadline.places, field_of(&ld->nodes[i], "deadline"));
    }
}

/* A policy is opened by who runs the pipeline, and refuses its name or a parameter then. */
static void keep_policy(struct tec_loader *ld, const struct tec_decl_entry *use)
{
    if (use)
        ld->pipeline->policy.where_name = tec_where_field(ld, use, "name");
    keep(ld, &ld->pipeline->policy.places, field_of(use, "params"));
}

void tec_keep_places(struct tec_loader *ld)
{
    struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_value *root = ld->root;
    keep_models(ld);
    keep_inputs(ld);
    keep_resources(ld);
    keep_nodes(ld);
    keep_policy(ld, tec_decl_value_find(root, "policy"));
    keep(ld, &p->frame.places, tec_decl_value_find(root, "frame"));
    keep(ld, &p->memory.places, tec_decl_value_find(root, "memory"));
    p->guard.where_fallback = tec_where_field(ld, tec_decl_value_find(root, "guard"), "fallback");
}
