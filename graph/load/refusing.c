/* refusing.c - the node that is looked at: the places of its fields, the inputs that it reads. */
#include "graph/load/refusing.h"

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
