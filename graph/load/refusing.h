/* refusing.h - for the files that look at the nodes of a pipeline without errors: graphs that mean
 * nothing (E071), that are larger than there is room for (E072).
 *
 * Each function of a list looks at one node and reports one case, or two that are near each other.
 * All are reported at once. */
#ifndef TEC_GRAPH_LOAD_REFUSING_H
#define TEC_GRAPH_LOAD_REFUSING_H

#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

struct tec_refusing {
    struct tec_loader *ld;
    const struct tec_pipeline *p;
    int at;                        /* the node that is looked at */
    const struct tec_decl_node *n; /* the same */
};

/* meaningless.c, counts.c: every case of a node. */
void tec_refuse_meaningless(struct tec_refusing *r);
void tec_refuse_more(struct tec_refusing *r);

/* The place of a field of the node; of the node where it does not have the field. Of the last input
 * of a kind that it reads, and how many there are. */
struct tec_where tec_refusing_field(const struct tec_refusing *r, const char *name);
int tec_refusing_reads(const struct tec_refusing *r, enum tec_input_kind kind,
                       struct tec_where *last);

static inline const char *tec_refusing_name(const struct tec_decl_node *n)
{
    return n->name ? n->name : tec_decl_node_word(n->kind);
}

static inline bool tec_refusing_on(const struct tec_refusing *r, const struct tec_decl_node *n,
                                   enum tec_resource_kind kind)
{
    return n->kv.index >= 0 && r->p->resources[n->kv.index].kind == kind;
}

static inline bool tec_refusing_rings(const struct tec_refusing *r, const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_DECODE && tec_refusing_on(r, n, TEC_RESOURCE_RING);
}

/* Does the node fill a ring? */
static inline bool tec_refusing_fills(const struct tec_refusing *r)
{
    return r->n->writes.index >= 0 && r->p->resources[r->n->writes.index].kind == TEC_RESOURCE_RING;
}

#endif
