/* slots.c - request slots of a chain, and which of them the texts of a node take.
 *
 * Each kv.requests has slots of its own, one behind the other in the order of declaration. What no
 * kv.requests declares is added to the first of them: a slot for each node over a kv.frame; and to
 * each one for the last finished text of a node whose keys stay. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

/* A kv.requests that a node's texts are in; -1 = none, it is over a kv.frame. */
static int requests_of(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    bool own = n->kv.index >= 0 && p->resources[n->kv.index].kind == TEC_RESOURCE_REQUESTS;
    return own ? n->kv.index : -1;
}

static bool makes_text(const struct tec_pipeline *p, const struct tec_decl_node *n, int chain)
{
    return !n->culled && n->chain == chain && n->kv.index >= 0 &&
           p->resources[n->kv.index].kind != TEC_RESOURCE_RING && tec_decl_makes_text(n);
}

/* Slots that nodes over `resource` (-1: over a kv.frame) add; *n counts these nodes. */
static int added_by(const struct tec_pipeline *p, int chain, int resource, int *n)
{
    int slots = 0;
    *n = 0;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *o = &p->nodes[i];
        if (!makes_text(p, o, chain) || requests_of(p, o) != resource)
            continue;
        ++*n;
        slots += (resource < 0) + tec_pipeline_keeps_keys(p, o);
    }
    return slots;
}

struct tec_decl_slots tec_pipeline_slots(const struct tec_pipeline *p, int chain,
                                         const struct tec_decl_node *node)
{
    int on_frame, nodes, first = 0, more = added_by(p, chain, -1, &on_frame);
    for (int i = 0; i < p->n_resources; i++) {
        int added = added_by(p, chain, i, &nodes);
        if (nodes == 0)
            continue;
        int n = p->resources[i].slots + added + more;
        if (node && (requests_of(p, node) == i || (requests_of(p, node) < 0 && first == 0)))
            return (struct tec_decl_slots){first, n};
        first += n;
        more = 0;
    }
    return (struct tec_decl_slots){0, first + more};
}
