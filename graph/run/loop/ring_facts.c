/* ring_facts.c - how full and how deep rings are, and what they owe. */
#include "graph/run/loop/ring_facts.h"

int64_t tec_ring_used(const struct tec_ring_state *ring)
{
    int64_t tokens = 0;
    for (int i = 0; i < ring->n; i++)
        tokens += tec_ring_stored(&ring->items[i]);
    return tokens;
}

int tec_rings_of_session(const struct tec_loop *l, int session)
{
    int n = 0;
    for (int i = 0; i < l->n_rings; i++)
        n += tec_ring_first(l, i)[session].n;
    return n;
}

int tec_rings_in_flight(const struct tec_loop *l)
{
    int n = 0;
    for (int s = 0; s < l->sessions; s++)
        n += tec_rings_of_session(l, s);
    return n;
}

int tec_ring_depth(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    const struct tec_topology *t = l->o.topology;
    int wish = l->decision.depth[tec_ring_index(l, ring)], stages = tec_ring_spec(ring)->stages;
    int deepest = t->n_depth ? t->depth[t->n_depth - 1] : stages;
    int depth = wish ? tec_snap_down(t->depth, t->n_depth, wish) : 0;
    if (depth < 1)
        depth = wish && t->n_depth ? t->depth[0] : deepest;
    return depth < stages ? depth : stages;
}

int tec_ring_forwards(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    return tec_stages_forwards(tec_ring_spec(ring)->stages, tec_ring_depth(l, ring));
}

int tec_rings_to_come(const struct tec_loop *l, const struct tec_ring_state *but)
{
    int n = 0;
    for (int i = 0; i < l->n_rings; i++) {
        const struct tec_ring_state *ring = tec_ring_own(l, tec_ring_first(l, i));
        int stages = tec_ring_spec(ring)->stages;
        int forwards = ring->ran ? ring->forwards_left : tec_ring_forwards(l, ring);
        if (ring == but)
            continue;
        n += !ring->ran && l->input && forwards >= stages;
        for (int k = 0; k < ring->n; k++)
            n += ring->items[k].stage < stages && ring->items[k].stage + forwards >= stages;
    }
    return n;
}

bool tec_ring_missed(struct tec_loop *l, struct tec_ring_state *ring, enum tec_cause *cause)
{
    int age = tec_stages_frames(tec_ring_spec(ring)->stages, tec_ring_depth(l, ring)) - 1;
    uint64_t bit = UINT64_C(1) << age;
    if (ring->broken & bit) { /* its action would have ended the filling */
        ring->filling = l->record.filling = false;
        for (int i = 0; i < l->n_rings; i++)
            l->record.filling |= tec_ring_own(l, tec_ring_first(l, i))->filling;
    }
    if (l->record.actions[ring->chain->action].release_ns >= 0 || ring->filling)
        return false;
    *cause = ring->broken & bit ? TEC_CAUSE_MODEL
             : ring->seen & bit ? TEC_CAUSE_PLAN
                                : TEC_CAUSE_INPUT;
    return true;
}
