/* merge.c - the node pass that makes equal prefills one: common-subexpression elimination, and with
 * it the sharing of a frame's keys and values between tasks. */
#include "graph/compile/spec.h"

enum tec_status tec_node_pass_merge(struct tec_node_set *set, struct tec_error *err)
{
    int kept = 0;
    for (int i = 0; i < set->n; i++) {
        const struct tec_decl_node *n = set->nodes[i];
        bool prefill = n->kind == TEC_DECL_PREFILL;
        if (prefill && set->prefill && !tec_pipeline_same_prefill(set->prefill, n))
            return tec_spec_refuse(
                &n->where, TEC_UNSUPPORTED, err,
                "this release runs one prefill over one kv.frame; with other inputs or template is",
                n->name);
        if (prefill && set->prefill)
            continue; /* the same work: its readers read the first one's */
        if (prefill)
            set->prefill = n;
        set->nodes[kept++] = n;
    }
    set->n = kept;
    if (set->prefill)
        return TEC_OK;
    if (set->pipeline->n_models > 1)
        return tec_spec_refuse(&set->pipeline->models[set->index].where, TEC_UNSUPPORTED, err,
                               "nothing to prefill for model",
                               set->pipeline->models[set->index].name);
    return tec_spec_refuse(&set->pipeline->where, TEC_UNSUPPORTED, err,
                           "nothing to prefill in pipeline", set->pipeline->name);
}
