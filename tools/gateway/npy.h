/* npy.h - arrays as NumPy's files of one array (numpy.lib.format): GR00T's clients send them. */
#ifndef TEC_TOOLS_GATEWAY_NPY_H
#define TEC_TOOLS_GATEWAY_NPY_H

#include "base/arena.h"
#include "tools/client/observation.h"

/* Read the array that is in these n bytes, versions 1 to 3, row-major, of at most 8 axes: dtype,
 * and data within the bytes. Leading axes of length 1 are left out until `rank` are left: a batch
 * and a horizon of one. The dtype is the arena's. TEC_MALFORMED, TEC_SHAPE or TEC_NO_MEMORY. */
enum tec_status tec_npy_read(struct tec_client_value *out, const uint8_t *data, size_t n, int rank,
                             struct tec_arena *arena, struct tec_error *err);

/* The same for a shape that stands elsewhere. */
enum tec_status tec_npy_squeeze(struct tec_client_value *out, const int64_t *shape, int axes,
                                int rank, struct tec_error *err);

enum { TEC_NPY_HEAD = 128 /* bytes before the data */ };

/* Write the head of a float32 array of these axes, at most 4. */
void tec_npy_head(uint8_t head[TEC_NPY_HEAD], const int64_t *shape, int axes);

#endif
