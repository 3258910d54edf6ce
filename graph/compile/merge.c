/* merge.c - the node pass that makes equal prefills one: common-subexpression elimination, and with
 * it the sharing of a frame's keys and values between tasks. */
#include "graph/compile/spec.h"

enum tec_status tec_node_pass_merge(struct tec_node_set *set, struct tec_error *err)
{
    int kept = 0;
    (void)err;
    for (int i = 0; i < set->n; i++) {
        const struct tec_decl_node *n = set->nodes[i];
        bool prefill = n->kind == TEC_DECL_PREFILL;
        if (prefill && set->prefill)
            continue; /* the same work: its readers read the first one's */
        if (prefill)
            set->prefill = n;
        set->nodes[kept++] = n;
    }
    set->n = kept;
    return TEC_OK;
}
