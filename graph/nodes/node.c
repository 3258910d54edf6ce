/* node.c - the list of node kinds, made from nodes.def.
 *
 * A line there without a file that defines its kind is a link error that names it. */
#include "graph/nodes/node.h"

const struct tec_node_kind *const tec_node_kinds[TEC_NODE_COUNT] = {
#define NODE(name, text) [TEC_NODE_##name] = &tec_node_##name,
#include "graph/nodes/nodes.def"
#undef NODE
};
