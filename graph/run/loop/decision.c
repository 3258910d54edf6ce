/* decision.c - what a frame's decision says of a node and of a request. */
#include "graph/run/loop/state.h"

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
