/* panels.h - tile sizes, bf16 pairs and float64 for kernels/panels/, in AVX2. */
#ifndef TEC_KERNELS_AVX2_PANELS_H
#define TEC_KERNELS_AVX2_PANELS_H

#include "kernels/avx2/vec.h"
#include "kernels/unroll.h"

typedef __m256d half; /* as many float64 as are half a vec */

/* Rows and panels of the largest register tile; of the largest that is read side by side for few
 * rows; rows of a float64 tile, over one panel. */
enum { ROWS_TILE = 6, PANELS_TILE = 1, ROWS_FEW = 2, PANELS_FEW = 3, ROWS_WIDE = 2 };

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
VEC_INLINE half half_zero(void)
{
    return _mm256_setzero_pd();
}
VEC_INLINE half half_set(float x)
{
    return _mm256_set1_pd((double)x);
}
VEC_INLINE half half_load(const float *at)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(at));
}
VEC_INLINE void half_store(float *at, half x)
{
    _mm_storeu_ps(at, _mm256_cvtpd_ps(x));
}
VEC_INLINE half half_fma(half a, half b, half sum)
{
    return _mm256_fmadd_pd(a, b, sum);
}

#endif
