/* refusals.c - looks at every node of a pipeline without errors for what is refused.
 *
 * What means nothing is in meaningless.c (E071), what there is no room for in counts.c (E072). What
 * depends on a model's description is not known here: the compiler and the engine refuse that with
 * TEC_UNSUPPORTED and a place, which `tectum check` tells as E070. */
#include "graph/load/refusing.h"

void tec_refuse(struct tec_loader *ld)
{
    struct tec_refusing r = {.ld = ld, .p = ld->pipeline};
    for (r.at = 0; r.at < r.p->n_nodes; r.at++) {
        r.n = &r.p->nodes[r.at];
        if (r.n->culled || r.n->chain < 0)
            continue;
        tec_refuse_meaningless(&r);
        tec_refuse_more(&r);
    }
}
