/* decision.c - what a frame's decision says of a node, of a request and of a prompt of segments. */
#include "graph/run/loop/decision.h"

static int node_priority(const struct tec_loop *l, int row)
{
    return l->decision.nodes[l->o.decoders[l->requests[row].decoder].node].priority;
}

bool tec_loop_leaves_out(const struct tec_loop *l, int node)
{
    return l->o.topology->nodes[node].optional && l->decision.nodes[node].skip;
}

bool tec_loop_before(const struct tec_loop *l, int a, int b)
{
    int x = node_priority(l, a), y = node_priority(l, b);
    return x != y ? x < y : l->decision.rows[a].priority < l->decision.rows[b].priority;
}

void tec_loop_recompute(const struct tec_loop *l, const struct tec_chain *c,
                        const struct tec_memory_prompt *prompt)
{
    const struct tec_executor *e = c->executor;
    int first = -1;
    for (int i = 0; i < c->n_shown; i++)
        first = c->shown[i] == prompt ? c->first_segment[i] : first;
    if (e->recompute)
        e->recompute(e->memory, &l->decision, prompt, first);
}
