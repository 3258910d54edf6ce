/* parse_head.h - the head of an evaluated description. */
#ifndef TEC_GRAPH_MODEL_PARSE_HEAD_H
#define TEC_GRAPH_MODEL_PARSE_HEAD_H

#include "graph/model/model.h"

/* `json`: the part. The model's text has been parsed. */
enum tec_status tec_parse_head(struct tec_model *model, json_t *json, struct tec_error *err);

#endif
