/* refusals.c - looks at every node of a pipeline without errors for what is refused.
 *
 * What means nothing is in meaningless.c (E071), what there is no room for in counts.c (E072). What
 * depends on a model's description is not known here: the compiler and the engine refuse that with
 * TEC_UNSUPPORTED and a place, which `tectum check` tells as E070. */
#include "graph/load/refusals.h"

struct tec_where tec_refusing_field(const struct tec_refusing *r, const char *name)
{
    return tec_where_field(r->ld, &r->ld->nodes[r->at], name);
}

int tec_refusing_reads(const struct tec_refusing *r, enum tec_input_kind kind,
                       struct tec_where *last)
{
    const struct tec_decl_entry *list = tec_decl_value_find(r->ld->nodes[r->at].value, "reads");
    int count = 0;
    for (int i = 0; i < r->n->reads.n; i++) {
        if (r->p->inputs[r->n->reads.item[i].index].kind != kind)
            continue;
        count++;
        *last = list && i < list->value->n ? tec_where_value(r->ld, &list->value->entries[i])
                                           : tec_refusing_field(r, "reads");
    }
    return count;
}

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
