/* panels.h - tile sizes and bf16 pairs for kernels/panels/, in AVX2. */
#ifndef TEC_KERNELS_AVX2_PANELS_H
#define TEC_KERNELS_AVX2_PANELS_H

#include "kernels/avx2/vec.h"
#include "kernels/unroll.h"

/* Rows and panels of the largest register tile; of the largest that is read side by side for few
 * rows. */
enum { ROWS_TILE = 6, PANELS_TILE = 1, ROWS_FEW = 2, PANELS_FEW = 3 };

/* Splits VEC_WIDTH pairs of bf16: the first and the second of each, as float32. */
VEC_INLINE vec pair_first(const char *pairs)
{
    __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)pairs);
    return _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
}
VEC_INLINE vec pair_second(const char *pairs)
{
    __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)pairs);
    return _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32((int)0xffff0000U)));
}

#endif
