/* parse.h - between the files of graph/model: an evaluated description as structs. */
#ifndef TEC_GRAPH_MODEL_PARSE_H
#define TEC_GRAPH_MODEL_PARSE_H

#include "graph/model/model.h"

/* Fill `model` from model->json; strings are borrowed from it. */
enum tec_status tec_model_parse(struct tec_model *model, struct tec_error *err);

/* Parts of it. `where` names the place in messages; the model's text is parsed before its vision.
 */
enum tec_status tec_parse_vision(struct tec_model *model, json_t *json, struct tec_error *err);
enum tec_status tec_parse_head(struct tec_model *model, json_t *json, struct tec_error *err);

/* Options of words: {kind, group, minus?, ordered?}; {theta, f32?, stretch?, sections?}; {name,
 * rows, buckets, distance}, whose name is borrowed. */
enum tec_status tec_parse_packing(struct tec_packing *packing, json_t *json, struct tec_error *err);
enum tec_status tec_parse_rotation(struct tec_rotation *rotation, json_t *json,
                                   struct tec_error *err);
enum tec_status tec_parse_relative(struct tec_relative *relative, json_t *json,
                                   struct tec_error *err);

/* [{name, height, width, mean, std}] of a LeRobot checkpoint's pictures, for descriptions. */
enum tec_status tec_model_pictures(json_t **out, const struct tec_checkpoint *checkpoint,
                                   struct tec_heap *heap, struct tec_error *err);

/* "gelu" (tanh), "gelu_erf", "silu" or "relu"; NULL is "gelu". */
enum tec_status tec_parse_activation(enum tec_activation *activation, const char *name,
                                     const char *where, struct tec_error *err);

/* 1 .. 2^20. */
enum { TEC_PARSE_MAX = 1 << 20 };
enum tec_status tec_parse_positive(int value, const char *where, const char *what,
                                   struct tec_error *err);

/* json_unpack with the place in the message. */
#define TEC_UNPACK(json, where, ...)                                       \
    do {                                                                   \
        json_error_t e_;                                                   \
        if (json_unpack_ex(json, &e_, JSON_STRICT, __VA_ARGS__) != 0)      \
            return tec_fail(err, TEC_MALFORMED, "%s: %s", where, e_.text); \
    } while (0)

#endif
