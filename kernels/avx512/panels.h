/* panels.h - tile sizes, bf16 pairs and float64 for kernels/panels/, in AVX-512. */
#ifndef TEC_KERNELS_AVX512_PANELS_H
#define TEC_KERNELS_AVX512_PANELS_H

#include "kernels/avx512/vec.h"
#include "kernels/unroll.h"

typedef __m512d half; /* as many float64 as are half a vec */

/* Rows and panels of the largest register tile; of the largest that is read side by side for few
 * rows; rows of a float64 tile, over one panel. */
enum { ROWS_TILE = 13, PANELS_TILE = 2, ROWS_FEW = 8, PANELS_FEW = 4, ROWS_WIDE = 8 };

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
VEC_INLINE half half_zero(void)
{
    return _mm512_setzero_pd();
}
VEC_INLINE half half_set(float x)
{
    return _mm512_set1_pd((double)x);
}
VEC_INLINE half half_load(const float *at)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(at));
}
VEC_INLINE void half_store(float *at, half x)
{
    _mm256_storeu_ps(at, _mm512_cvtpd_ps(x));
}
VEC_INLINE half half_fma(half a, half b, half sum)
{
    return _mm512_fmadd_pd(a, b, sum);
}

#endif
