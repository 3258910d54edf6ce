/* panels.h - tile sizes and bf16 pairs for kernels/panels/, in AVX-512. */
#ifndef TEC_KERNELS_AVX512_PANELS_H
#define TEC_KERNELS_AVX512_PANELS_H

#include "kernels/avx512/vec.h"
#include "kernels/unroll.h"

/* Rows and panels of the largest register tile; of the largest that is read side by side for few
 * rows. */
enum { ROWS_TILE = 13, PANELS_TILE = 2, ROWS_FEW = 8, PANELS_FEW = 4 };

/* Splits VEC_WIDTH pairs of bf16: the first and the second of each, as float32. */
VEC_INLINE vec pair_first(const char *pairs)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(pairs), 16));
}
VEC_INLINE vec pair_second(const char *pairs)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(pairs), _mm512_set1_epi32((int)0xffff0000U)));
}

#endif
