/* parse.h - an evaluated description as structs. */
#ifndef TEC_GRAPH_MODEL_PARSE_H
#define TEC_GRAPH_MODEL_PARSE_H

#include "graph/model/model.h"

/* Fill `model` from model->json; strings are borrowed from it. */
enum tec_status tec_model_parse(struct tec_model *model, struct tec_error *err);

#endif
