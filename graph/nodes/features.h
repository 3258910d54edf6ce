/* features.h - rows of features and the denoiser that reads them: what prefill and action do for
 * such a model. */
#ifndef TEC_GRAPH_NODES_FEATURES_H
#define TEC_GRAPH_NODES_FEATURES_H

#include "graph/nodes/node.h"

/* Pictures and prompt through the text to rows of features; to the frame's slots the keys and
 * values that the denoiser's crossing layers make of them. */
void tec_lower_features(struct tec_lower *l);

/* Noise to actions over those. */
void tec_lower_denoiser(struct tec_lower *l);

#endif
