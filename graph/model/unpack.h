/* unpack.h - values of an evaluated description, each checked. */
#ifndef TEC_GRAPH_MODEL_UNPACK_H
#define TEC_GRAPH_MODEL_UNPACK_H

#include "graph/model/model.h"

/* json_unpack with the place in the message. */
#define TEC_UNPACK(json, where, ...)                                       \
    do {                                                                   \
        json_error_t e_;                                                   \
        if (json_unpack_ex(json, &e_, JSON_STRICT, __VA_ARGS__) != 0)      \
            return tec_fail(err, TEC_MALFORMED, "%s: %s", where, e_.text); \
    } while (0)

/* 1 .. 2^20. */
enum { TEC_PARSE_MAX = 1 << 20 };
enum tec_status tec_parse_positive(int value, const char *where, const char *what,
                                   struct tec_error *err);

/* "gelu" (tanh), "gelu_erf", "silu" or "relu"; NULL is "gelu". */
enum tec_status tec_parse_activation(enum tec_activation *activation, const char *name,
                                     const char *where, struct tec_error *err);

#endif
