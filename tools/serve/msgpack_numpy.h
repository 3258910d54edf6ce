/* msgpack_numpy.h - values as openpi's clients pack them: ndarrays, numpy scalars, numbers, texts.
 *
 * An ndarray is a map of __ndarray__, data, dtype, shape (keys bin or str, in any order), a numpy
 * scalar one of __npgeneric__, data, dtype. Row-major always: the clients copy what is not. */
#ifndef TEC_TOOLS_SERVE_MSGPACK_NUMPY_H
#define TEC_TOOLS_SERVE_MSGPACK_NUMPY_H

#include "base/arena.h"
#include "graph/transform/observer.h"
#include "tools/serve/msgpack_read.h"

enum {
    TEC_NUMPY_RANK = 4,
    TEC_NUMPY_CONVERTED = 1 << 20 /* most elements of an observation's array to be converted */
};

/* The kind of value that was read. */
enum tec_numpy_found {
    TEC_NUMPY_VALUE,
    TEC_NUMPY_MAP,    /* a map that is no array; the reader stands before its first key */
    TEC_NUMPY_NOTHING /* nil, an extension, a list of texts: as if it had not been sent */
};

/* Read the value that `token` began. Its data lies in the message, or in the arena where it had to
 * be changed:
 *     |u1, <f4, <f8                     as they are, rank 0 to 4
 *     |b1 |i1 <i2 <i4 <i8 <u2.. <f2     float64
 *     str, bin, 0-d <U and |S           a text, UTF-8
 *     numbers, numpy scalars            float64, rank 0
 *     arrays (lists) of numbers         float64, rank 1 to 4, all rows of one length
 * `name` is for messages and becomes the value's. What has to be changed and has more elements than
 * `most` is refused before any of them is. TEC_MALFORMED, TEC_SHAPE, TEC_UNSUPPORTED or
 * TEC_NO_MEMORY: one sentence that begins with the name. */
enum tec_status tec_numpy_read(struct tec_value *out, enum tec_numpy_found *found,
                               struct tec_msgpack *r, const struct tec_msgpack_token *token,
                               const char *name, size_t most, struct tec_arena *arena,
                               struct tec_error *err);

#endif
