/* validate.c - the node pass that refuses, in words and with a place, what this release cannot run.
 */
#include "graph/compile/spec.h"

static enum tec_status check_node(struct tec_node_set *set, const struct tec_decl_node *n,
                                  struct tec_error *err)
{
    if (n->kind == TEC_DECL_MEMORY_LOAD)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release reads and checks memory_load nodes but cannot run",
                               n->name);
    if (n->pack_with.name || n->kv.prev)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release reads and checks ring pipelines but cannot run",
                               n->name);
    if (n->kind == TEC_DECL_ACTION && set->action)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs one action node a pipeline; a second is",
                               n->name);
    if (n->kind == TEC_DECL_ACTION)
        set->action = n;
    return TEC_OK;
}

enum tec_status tec_node_pass_validate(struct tec_node_set *set, struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    if (p->n_models > 1)
        return tec_spec_refuse(&p->models[1].where, TEC_UNSUPPORTED, err,
                               "this release runs one model a pipeline; a second is",
                               p->models[1].name);
    for (int i = 0; i < set->n; i++)
        TEC_TRY(check_node(set, set->nodes[i], err));
    return TEC_OK;
}
