/* panels.h - tile sizes and bf16 pairs for kernels/panels/, in NEON. */
#ifndef TEC_KERNELS_NEON_PANELS_H
#define TEC_KERNELS_NEON_PANELS_H

#include "kernels/neon/vec.h"
#include "kernels/unroll.h"

/* Rows and panels of the largest register tile; of the largest that is read side by side for few
 * rows. */
enum { ROWS_TILE = 6, PANELS_TILE = 1, ROWS_FEW = 4, PANELS_FEW = 2 };

/* Splits VEC_WIDTH pairs of bf16: the first and the second of each, as float32. */
VEC_INLINE vec pair_first(const char *pairs)
{
    uint32x4_t both;
    memcpy(&both, pairs, sizeof both);
    return vreinterpretq_f32_u32(vshlq_n_u32(both, 16));
}
VEC_INLINE vec pair_second(const char *pairs)
{
    uint32x4_t both;
    memcpy(&both, pairs, sizeof both);
    return vreinterpretq_f32_u32(vandq_u32(both, vdupq_n_u32(0xffff0000U)));
}

#endif
