/* encoded.h - what the prefill and action nodes do for a model whose chunk is asked of an encoder's
 * rows. */
#ifndef TEC_GRAPH_NODES_ENCODED_H
#define TEC_GRAPH_NODES_ENCODED_H

#include "graph/nodes/node.h"

/* Pictures and the robot's state through the encoder, and the keys and values of each layer of the
 * queries to the frame's slots. */
void tec_lower_encoded(struct tec_lower *l);

/* The queries over those, to the chunk. */
void tec_lower_queries(struct tec_lower *l);

/* The picture of a slot through the net: rows of its last step. */
int tec_lower_net(struct tec_lower *l, int slot);

#endif
