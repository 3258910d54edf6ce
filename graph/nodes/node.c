#include "graph/nodes/node.h"

const struct tec_node_kind *const tec_node_kinds[TEC_NODE_COUNT] = {
#define NODE(name, text) [TEC_NODE_##name] = &tec_node_##name,
#include "graph/nodes/nodes.def"
#undef NODE
};
