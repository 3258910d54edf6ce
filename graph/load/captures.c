/* captures.c - which actions share a capture with their prefill, and how many captures a pipeline
 * needs, before anything is lowered. */
#include "graph/load/pipeline.h"
#include "graph/load/pipeline_texts.h"

/* Does an action stand on each frame's prefix, and wait for nothing else? */
static bool on_prefix(const struct tec_pipeline *p, const struct tec_decl_node *action)
{
    return !action->kv.prev && tec_pipeline_acts_every(p, action) == 1 &&
           !tec_pipeline_on_text(p, action) && !tec_pipeline_waits_for(p, action);
}

/* A recall stands in the prefill's place. */
bool tec_pipeline_with_prefill(const struct tec_pipeline *p, const struct tec_decl_node *action)
{
    bool with = on_prefix(p, action) && tec_pipeline_every(p, action->chain) == 1 &&
                !tec_pipeline_remembers(p, action->chain);
    for (int i = 0; with && i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        with = n == action || n->culled || n->kind != TEC_DECL_ACTION || !on_prefix(p, n) ||
               n->chain != action->chain || tec_pipeline_acts_before(action, n);
    }
    return with;
}

bool tec_pipeline_leaves_prefill(const struct tec_pipeline *p, const struct tec_decl_node *action)
{
    bool others = false;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        others |=
            n != action && n->kind == TEC_DECL_ACTION && !n->culled && n->chain == action->chain;
    }
    return others && action->when_policy && tec_pipeline_with_prefill(p, action);
}

/* Is it a decode node whose texts are requests, of a kv.requests or behind a kv.frame? */
static bool decodes_requests(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    if (n->culled || n->kind != TEC_DECL_DECODE || n->kv.index < 0)
        return false;
    enum tec_resource_kind kind = p->resources[n->kv.index].kind;
    return kind == TEC_RESOURCE_REQUESTS || kind == TEC_RESOURCE_FRAME;
}

/* Such nodes of one chain share its captures: is this the first of them? */
static bool first_decoder(const struct tec_pipeline *p, int node)
{
    for (int i = 0; i < node; i++)
        if (decodes_requests(p, &p->nodes[i]) && p->nodes[i].chain == p->nodes[node].chain)
            return false;
    return true;
}

/* Of the drafts of a chain's nodes: a prefill each, and for every batch the tokens that it
 * proposes; and the forwards that look at them. */
static int draft_captures(const struct tec_pipeline *p, int chain)
{
    int drafts = 0;
    for (int i = p->n_nodes - p->n_drafts; i < p->n_nodes; i++)
        drafts += p->nodes[p->nodes[i].proposes - 1].chain == chain;
    return drafts * (1 + p->capture.slices + p->capture.batch.n) +
           (drafts > 0) * p->capture.batch.n;
}

/* Of a prefill in frames: several sessions' observations in one launch; not where a memory is in
 * its prompt, nor in a ring, whose forward takes any number. */
static int together_captures(const struct tec_pipeline *p, const struct tec_decl_node *prefill)
{
    const struct tec_ints *together = &p->capture.sessions;
    int n = together->n ? 0 : 1;
    for (int i = 0; i < together->n; i++)
        n += together->item[i] > 1;
    return p->frame.sessions > 1 && !tec_pipeline_ring_of(p, prefill->chain) &&
                   !tec_pipeline_remembers(p, prefill->chain)
               ? n
               : 0;
}

/* Do requests stand on the keys of a chain? */
static bool has_requests(const struct tec_pipeline *p, int chain)
{
    bool any = false;
    for (int i = 0; i < p->n_nodes; i++)
        any |= p->nodes[i].chain == chain && decodes_requests(p, &p->nodes[i]);
    return any;
}

/* A prefill without the action that goes with it, unless requests have one already. */
static int alone_captures(const struct tec_pipeline *p, const struct tec_decl_node *action)
{
    bool alone = tec_pipeline_leaves_prefill(p, action) && !has_requests(p, action->chain);
    for (int i = 0; i < p->n_nodes; i++)
        alone &= p->nodes[i].culled || p->nodes[i].chain != action->chain ||
                 p->nodes[i].kind != TEC_DECL_SCORE;
    return alone;
}

int tec_pipeline_captures(const struct tec_pipeline *p)
{
    int n = 0;
    int packed = 0;
    bool forks = false, scores = false;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *node = &p->nodes[i];
        const struct tec_decl_resource *kv =
            node->kv.index >= 0 ? &p->resources[node->kv.index] : NULL;
        bool secondary = !tec_pipeline_in_frames(p, node);
        if (node->culled || (secondary && node->kind == TEC_DECL_PREFILL))
            continue; /* of a second chain: counted with its requests */
        if (node->kind == TEC_DECL_SCORE) {
            scores = true;
        } else if (decodes_requests(p, node)) {
            if (!first_decoder(p, i))
                continue;
            n += p->capture.batch.n;
            forks |= !secondary;
            /* the private prefill of an unshared request */
            n += kv->kind == TEC_RESOURCE_FRAME || kv->share_prefix.name;
            n += secondary ? p->capture.slices : 0;
            n += draft_captures(p, node->chain);
        } else if (kv && kv->kind == TEC_RESOURCE_RING) {
            /* packed with the prefill, and decode alone; or decode alone */
            n += 1 + (node->pack_with.index >= 0 && kv->stages > 1);
            packed += node->pack_with.index >= 0;
        } else if (node->kind == TEC_DECL_REMEMBER) {
            continue; /* a part with its memory's */
        } else if (node->kind == TEC_DECL_ACTION && tec_pipeline_with_prefill(p, node)) {
            n += alone_captures(p, node); /* else a part with its prefill */
        } else {
            n += 1 + (node->kind == TEC_DECL_PREFILL ? together_captures(p, node) : 0);
        }
    }
    n += scores + (scores && !forks); /* one tree at a time; its requests' private prefill */
    return n > packed ? n - packed : n;
}
