/* vector.h - the AVX2 vector that kernels/panels/ is written with. */
#ifndef TEC_KERNELS_AVX2_VECTOR_H
#define TEC_KERNELS_AVX2_VECTOR_H

#include "kernels/unroll.h"

#include <immintrin.h>

#define VEC_TARGET __attribute__((target("avx2,fma")))
#define VEC_INLINE TEC_INLINE VEC_TARGET

typedef __m256 vec;
typedef __m256d vec_wide; /* half as many float64 */

/* Floats in a vector; rows of the largest register tile over PANELS_TILE panels, and over
 * PANELS_FEW, which serves up to ROWS_FEW rows; float64 rows over one panel. */
enum { WIDTH = 8, ROWS_TILE = 6, PANELS_TILE = 1, ROWS_FEW = 2, PANELS_FEW = 3, ROWS_WIDE = 2 };

VEC_INLINE vec vec_zero(void)
{
    return _mm256_setzero_ps();
}
VEC_INLINE vec vec_set(float x)
{
    return _mm256_set1_ps(x);
}
VEC_INLINE vec vec_load(const float *at)
{
    return _mm256_loadu_ps(at);
}
VEC_INLINE void vec_store(float *at, vec x)
{
    _mm256_storeu_ps(at, x);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}
VEC_INLINE vec vec_fma(vec a, vec b, vec sum)
{
    return _mm256_fmadd_ps(a, b, sum);
}
/* Of WIDTH pairs of bf16: the first and the second of each, as float32. */
VEC_INLINE vec vec_first(const char *pairs)
{
    __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)pairs);
    return _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
}
VEC_INLINE vec vec_second(const char *pairs)
{
    __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)pairs);
    return _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32((int)0xffff0000U)));
}
VEC_INLINE vec_wide wide_zero(void)
{
    return _mm256_setzero_pd();
}
VEC_INLINE vec_wide wide_set(float x)
{
    return _mm256_set1_pd((double)x);
}
VEC_INLINE vec_wide wide_load(const float *at)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(at));
}
VEC_INLINE void wide_store(float *at, vec_wide x)
{
    _mm_storeu_ps(at, _mm256_cvtpd_ps(x));
}
VEC_INLINE vec_wide wide_fma(vec_wide a, vec_wide b, vec_wide sum)
{
    return _mm256_fmadd_pd(a, b, sum);
}

#endif
