/* parse_words.h - options of words that are tables, as structs. */
#ifndef TEC_GRAPH_MODEL_PARSE_WORDS_H
#define TEC_GRAPH_MODEL_PARSE_WORDS_H

#include "graph/model/model.h"

/* Options of words: {kind, group, minus?, ordered?}; {theta, f32?, stretch?, sections?}; {name,
 * rows, buckets, distance}, whose name is borrowed. */
enum tec_status tec_parse_packing(struct tec_packing *packing, json_t *json, struct tec_error *err);
enum tec_status tec_parse_rotation(struct tec_rotation *rotation, json_t *json,
                                   struct tec_error *err);
enum tec_status tec_parse_relative(struct tec_relative *relative, json_t *json,
                                   struct tec_error *err);

#endif
