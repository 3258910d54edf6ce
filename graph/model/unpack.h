/* unpack.h - values of an evaluated description, each checked. */
#ifndef TEC_GRAPH_MODEL_UNPACK_H
#define TEC_GRAPH_MODEL_UNPACK_H

#include "graph/model/model.h"

/* json_unpack of a table that has no other fields, with the place in the message. */
#define TEC_UNPACK(json, where, ...)                                  \
    do {                                                              \
        json_error_t e_;                                              \
        if (json_unpack_ex(json, &e_, JSON_STRICT, __VA_ARGS__) != 0) \
            return tec_unpack_fail(where, e_.text, err);              \
    } while (0)

/* What jansson says of a table that it could not unpack, in the words of a description. */
enum tec_status tec_unpack_fail(const char *where, const char *says, struct tec_error *err);

/* 1 .. 2^20. */
enum { TEC_PARSE_MAX = 1 << 20 };
enum tec_status tec_parse_positive(int value, const char *where, const char *what,
                                   struct tec_error *err);

/* "gelu" (tanh), "gelu_erf", "silu" or "relu"; NULL is "gelu". */
enum tec_status tec_parse_activation(enum tec_activation *activation, const char *name,
                                     const char *where, struct tec_error *err);

#endif
