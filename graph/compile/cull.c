/* cull.c - the node pass that leaves out what reaches no deadline and no output (W103 at load). */
#include "graph/compile/spec.h"

enum tec_status tec_node_pass_cull(struct tec_node_set *set, struct tec_error *err)
{
    int kept = 0;
    for (int i = 0; i < set->n; i++)
        if (!set->nodes[i]->culled)
            set->nodes[kept++] = set->nodes[i];
    set->n = kept;
    if (kept)
        return TEC_OK;
    if (set->pipeline->n_models > 1)
        return tec_where_fail(err, TEC_INVALID, &set->pipeline->models[set->index].where,
                              "no node is left of model '%s'",
                              set->pipeline->models[set->index].name);
    return tec_where_fail(err, TEC_INVALID, &set->pipeline->where,
                          "no node is left in pipeline '%s'", set->pipeline->name);
}
