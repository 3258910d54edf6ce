/* pictures.h - what a LeRobot checkpoint says of its pictures. */
#ifndef TEC_GRAPH_MODEL_PICTURES_H
#define TEC_GRAPH_MODEL_PICTURES_H

#include "graph/model/model.h"

/* [{name, height, width, mean, std}] of a LeRobot checkpoint's pictures, for descriptions. */
enum tec_status tec_model_pictures(json_t **out, const struct tec_checkpoint *checkpoint,
                                   struct tec_heap *heap, struct tec_error *err);

#endif
