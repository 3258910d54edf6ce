/* validate.c - the node pass that sorts out the nodes of a chain and refuses, in words and with a
 * place, what its model cannot do. Graphs that this release does not run were refused when the file
 * was loaded (graph/load/refusals.c). */
#include "graph/compile/spec.h"

static enum tec_status check_ring(struct tec_node_set *set, const struct tec_decl_node *n,
                                  struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    const struct tec_decl_resource *r = n->kv.index < 0 ? NULL : &p->resources[n->kv.index];
    if (n->kind != TEC_DECL_DECODE || !r || r->kind != TEC_RESOURCE_RING)
        return TEC_OK;
    if (n->max_tokens != r->stages)
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' makes %d tokens, ring '%s' has %d stages: one for each token",
                              n->name, n->max_tokens, r->name, r->stages);
    set->ring = n;
    return TEC_OK;
}

/* The prefill of a chain beside that of the hard nodes reads at most as many pictures as its model
 * has slots. */
static enum tec_status check_pictures(const struct tec_node_set *set, const struct tec_decl_node *n,
                                      struct tec_error *err)
{
    int pictures = tec_pipeline_reads(set->pipeline, n, TEC_INPUT_IMAGE);
    if (pictures > set->model->n_slots)
        return tec_where_fail(err, TEC_MALFORMED, &n->where,
                              "'%s' reads %d pictures, model '%s' has %d camera slots", n->name,
                              pictures, set->model->name, set->model->n_slots);
    return TEC_OK;
}

enum tec_status tec_node_pass_validate(struct tec_node_set *set, struct tec_error *err)
{
    for (int i = 0; i < set->n; i++) {
        const struct tec_decl_node *n = set->nodes[i];
        if (n->kind == TEC_DECL_MEMORY_LOAD)
            set->memories[set->n_memories++] = n;
        if (n->kind == TEC_DECL_ACTION)
            set->actions[set->n_actions++] = n;
        TEC_TRY(check_ring(set, n, err));
        if (set->secondary && n->kind == TEC_DECL_PREFILL)
            TEC_TRY(check_pictures(set, n, err));
    }
    return TEC_OK;
}
