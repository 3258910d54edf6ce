/* validate.c - the node pass that refuses, in words and with a place, what this release cannot run.
 */
#include "graph/compile/spec.h"

/* A ring is all that its chain runs: one prefill that enters it, one decode node packed with that
 * makes a whole action. */
static enum tec_status check_ring(struct tec_node_set *set, const struct tec_decl_node *n,
                                  struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    const struct tec_decl_resource *r = n->kv.index < 0 ? NULL : &p->resources[n->kv.index];
    if (n->kind != TEC_DECL_DECODE || !r || r->kind != TEC_RESOURCE_RING)
        return n->kv.prev ? tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                                            "this release reads only a ring with prev; not so does",
                                            n->name)
                          : TEC_OK;
    if (n->pack_with.index < 0)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs a ring's decode packed with its prefill "
                               "(pack_with); not so",
                               n->name);
    if (n->max_tokens != r->stages)
        return tec_fail(err, TEC_MALFORMED,
                        "%s:%d: '%s' makes %d tokens, ring '%s' has %d stages: one for each token",
                        n->where.file ? n->where.file : "?", n->where.line, n->name, n->max_tokens,
                        r->name, r->stages);
    if (set->ring)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs one decode node over a ring; a second is",
                               n->name);
    if (set->secondary)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs one ring, and no action node beside it; not so "
                               "with",
                               n->name);
    if (set->n != 2)
        return tec_spec_refuse(
            &n->where, TEC_UNSUPPORTED, err,
            "this release runs a ring of a prefill and its decode node; more nodes stand on the "
            "keys of",
            n->name);
    set->ring = n;
    return TEC_OK;
}

static enum tec_status check_node(struct tec_node_set *set, const struct tec_decl_node *n,
                                  struct tec_error *err)
{
    if (n->kind == TEC_DECL_MEMORY_LOAD && set->memory)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs one memory_load node a pipeline; a second is",
                               n->name);
    if (n->kind == TEC_DECL_MEMORY_LOAD)
        set->memory = n;
    if (n->kind == TEC_DECL_ACTION && set->action)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs one action node a pipeline; a second is",
                               n->name);
    if (n->kind == TEC_DECL_ACTION)
        set->action = n;
    return check_ring(set, n, err);
}

/* What the prefill of a chain beside that of the hard nodes reads: one text, and of the observation
 * pictures and the state. */
static enum tec_status check_reads(const struct tec_node_set *set, const struct tec_decl_node *n,
                                   struct tec_error *err)
{
    const struct tec_pipeline *p = set->pipeline;
    int of[TEC_INPUT_SEGMENTS + 1] = {0};
    for (int i = 0; i < n->reads.n; i++)
        of[p->inputs[n->reads.item[i].index].kind]++;
    if (of[TEC_INPUT_TEXT] != 1 || of[TEC_INPUT_SEGMENTS])
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release reads one text, with pictures and the state, in a "
                               "prefill that requests wait for; not so does",
                               n->name);
    if (of[TEC_INPUT_IMAGE] > set->model->n_slots)
        return tec_fail(err, TEC_MALFORMED,
                        "%s:%d: '%s' reads %d pictures, model '%s' has %d camera slots",
                        n->where.file ? n->where.file : "?", n->where.line, n->name,
                        of[TEC_INPUT_IMAGE], set->model->name, set->model->n_slots);
    return TEC_OK;
}

/* A chain beside that of the hard nodes answers requests: an observation in, text out. */
static enum tec_status check_secondary(const struct tec_node_set *set,
                                       const struct tec_decl_node *n, struct tec_error *err)
{
    if (n->kind == TEC_DECL_MEMORY_LOAD)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release loads memory into the kv.frame of the hard nodes; "
                               "another one's is",
                               n->name);
    if (n->kind == TEC_DECL_ACTION)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs one action node a pipeline; a second is",
                               n->name);
    if (n->deadline.kind == TEC_DEADLINE_HARD)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release runs hard nodes over one prefill; one over another is",
                               n->name);
    if (n->prompt.index >= 0)
        return tec_spec_refuse(&n->where, TEC_UNSUPPORTED, err,
                               "this release reads a prompt of its own in decode nodes of the "
                               "prefill with the hard nodes; not so does",
                               n->name);
    return n->kind == TEC_DECL_PREFILL ? check_reads(set, n, err) : TEC_OK;
}

enum tec_status tec_node_pass_validate(struct tec_node_set *set, struct tec_error *err)
{
    for (int i = 0; i < set->n; i++) {
        TEC_TRY(check_node(set, set->nodes[i], err));
        if (set->secondary)
            TEC_TRY(check_secondary(set, set->nodes[i], err));
    }
    return TEC_OK;
}
