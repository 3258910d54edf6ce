/* head.h - what the action node does for a model whose chunk is read off one forward. */
#ifndef TEC_GRAPH_NODES_HEAD_H
#define TEC_GRAPH_NODES_HEAD_H

#include "graph/nodes/node.h"

/* Rows of l->hidden [horizon * dim, width] to the chunk, where a flow leaves its own. */
void tec_lower_head(struct tec_lower *l);

#endif
