/* refusals.c - graphs that are well defined, but that this release does not run (E070).
 *
 * Each function below looks at one node of a pipeline without errors and reports one case. Whoever
 * builds a case deletes its function and the name in `cases`; then its lines in
 * tests/pipelines/bad/expected.txt and refused*.lua, and what doc/values.md and doc/pipelines.md
 * say of it. What depends on a model's description is not known here: the compiler and the engine
 * refuse that with TEC_UNSUPPORTED and a place. */
#include "graph/load/refusals.h"

#include <string.h>

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

#define REFUSE(where, ...) \
    tec_diagnostics_add(r->ld->d, TEC_E070, where, "not in this release: " __VA_ARGS__)

static struct tec_where field(const struct tec_refusing *r, const char *name)
{
    return tec_refusing_field(r, name);
}

static const char *name_of(const struct tec_decl_node *n)
{
    return tec_refusing_name(n);
}

/* A store has one prompt's segments on their way at a time. */
static void shared_memory(struct tec_refusing *r)
{
    const struct tec_decl_node *other = NULL;
    for (int i = r->at - 1; r->n->kind == TEC_DECL_MEMORY_LOAD && i >= 0; i--) {
        const struct tec_decl_node *o = &r->p->nodes[i];
        if (o->kind == TEC_DECL_MEMORY_LOAD && !o->culled && o->from.index == r->n->from.index)
            other = o;
    }
    if (!other)
        return;
    struct tec_diagnostic *d =
        REFUSE(field(r, "from"), "'%s' loads from '%s' as '%s' does: one node loads from it",
               name_of(r->n), r->n->from.name, name_of(other));
    tec_diagnostics_also(r->ld->d, d, other->where, "the other one");
    tec_diagnostics_help(r->ld->d, d,
                         "a kv.segments of its own, whose segments are the same input's");
}

static void (*const cases[])(struct tec_refusing *r) = {
    shared_memory,
};

void tec_refuse(struct tec_loader *ld)
{
    struct tec_refusing r = {.ld = ld, .p = ld->pipeline};
    for (r.at = 0; r.at < r.p->n_nodes; r.at++) {
        r.n = &r.p->nodes[r.at];
        if (r.n->culled || r.n->chain < 0)
            continue;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            cases[i](&r);
        tec_refuse_meaningless(&r);
        tec_refuse_more(&r);
    }
}
