/* source.h - where a model's tensors come from: a checkpoint, or a seed. Immutable: threads may
 * read at once, each with its own error. */
#ifndef TEC_GRAPH_MODEL_SOURCE_H
#define TEC_GRAPH_MODEL_SOURCE_H

#include "graph/model/model.h"

#include <stdint.h>

struct tec_weight_source {
    const struct tec_checkpoint *checkpoint; /* NULL: random values */
    uint64_t seed;                           /* of random values */
    bool dry;                                /* nothing is read or written: only sizes matter */
    bool bf16;                               /* every value is rounded to bf16 */
};

/* A tensor found: its first present name, with the shape checked; or rows of it from `first` on. */
struct tec_found {
    const char *name;
    const struct tec_stored *stored; /* NULL for random values */
    int64_t first;
    int64_t rows, cols; /* as a matrix: first dimension, product of the others */
};

/* Find a tensor by the first present of its names. TEC_NOT_FOUND, TEC_SHAPE (shape or a dtype that
 * holds no real numbers); the message names checkpoint, tensor, what it is and what it must be. */
enum tec_status tec_weight_find(const struct tec_weight_source *source,
                                const struct tec_expected *expected, struct tec_found *found,
                                struct tec_error *err);

/* Rows first .. first + n - 1 as float32 [n, cols]. A value that is not finite is TEC_MALFORMED.
 * Random values are uniform with variance 1 / cols, the same for the same seed and name. */
enum tec_status tec_weight_rows(const struct tec_weight_source *source,
                                const struct tec_found *found, int64_t first, int64_t n, float *out,
                                struct tec_error *err);

/* A vector [n] by name, zero where name is NULL. Random values are `centre` +- 0.1. */
enum tec_status tec_weight_vector(const struct tec_weight_source *source, const char *name, int n,
                                  float centre, float *out, struct tec_error *err);

/* The matrix of category `at` [in, out] of a layer whose tensor is [categories, in, out], in =
 * cols, out = rows of `dense`: as rows of `found`. And its bias [out], of a tensor [categories,
 * out]. */
struct tec_category {
    int at, categories;
};
enum tec_status tec_weight_category(const struct tec_weight_source *source,
                                    const struct tec_dense *dense, struct tec_category category,
                                    struct tec_found *found, struct tec_error *err);
enum tec_status tec_weight_category_bias(const struct tec_weight_source *source,
                                         const struct tec_dense *dense,
                                         struct tec_category category, float *out,
                                         struct tec_error *err);

/* Whether two stored tensors hold the same bytes. */
enum tec_status tec_weight_same(const struct tec_weight_source *source, const struct tec_found *a,
                                const struct tec_found *b, bool *same, struct tec_error *err);

#endif
