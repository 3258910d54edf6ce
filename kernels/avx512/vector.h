/* vector.h - the AVX-512 vector that kernels/panels/ is written with. */
#ifndef TEC_KERNELS_AVX512_VECTOR_H
#define TEC_KERNELS_AVX512_VECTOR_H

#include "kernels/unroll.h"

#include <immintrin.h>

#define VEC_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))
#define VEC_INLINE TEC_INLINE VEC_TARGET

typedef __m512 vec;
typedef __m512d vec_wide; /* half as many float64 */

/* Floats in a vector; rows of the largest register tile over two and over one panel, and over
 * PANELS_FEW, which serves up to ROWS_FEW rows; float64 rows over one panel. */
enum { WIDTH = 16, ROWS_TILE = 13, PANELS_TILE = 2, ROWS_FEW = 8, PANELS_FEW = 4, ROWS_WIDE = 8 };

VEC_INLINE vec vec_zero(void)
{
    return _mm512_setzero_ps();
}
VEC_INLINE vec vec_set(float x)
{
    return _mm512_set1_ps(x);
}
VEC_INLINE vec vec_load(const float *at)
{
    return _mm512_loadu_ps(at);
}
VEC_INLINE void vec_store(float *at, vec x)
{
    _mm512_storeu_ps(at, x);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}
VEC_INLINE vec vec_fma(vec a, vec b, vec sum)
{
    return _mm512_fmadd_ps(a, b, sum);
}
/* Of WIDTH pairs of bf16: the first and the second of each, as float32. */
VEC_INLINE vec vec_first(const char *pairs)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(pairs), 16));
}
VEC_INLINE vec vec_second(const char *pairs)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(pairs), _mm512_set1_epi32((int)0xffff0000U)));
}
VEC_INLINE vec_wide wide_zero(void)
{
    return _mm512_setzero_pd();
}
VEC_INLINE vec_wide wide_set(float x)
{
    return _mm512_set1_pd((double)x);
}
VEC_INLINE vec_wide wide_load(const float *at)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(at));
}
VEC_INLINE void wide_store(float *at, vec_wide x)
{
    _mm256_storeu_ps(at, _mm512_cvtpd_ps(x));
}
VEC_INLINE vec_wide wide_fma(vec_wide a, vec_wide b, vec_wide sum)
{
    return _mm512_fmadd_pd(a, b, sum);
}

#endif
