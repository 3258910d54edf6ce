/* vec.h - sixteen floats at a time: the vector that kernels/vector/ is written over.
 *
 * Every vec.h defines the same names: VEC_WIDTH floats in a `vec`, a `block` of VEC_BLOCK vectors
 * (as many as the registers hold six of beside their operands), a `wide` of as many doubles. */
#ifndef TEC_KERNELS_AVX512_VEC_H
#define TEC_KERNELS_AVX512_VEC_H

#include <immintrin.h>
#include <stdint.h>

#define VEC_TARGET __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")))
#define VEC_INLINE static inline __attribute__((always_inline, unused)) VEC_TARGET
#define VEC_NAME(kernel) tec_##kernel##_avx512

enum { VEC_WIDTH = 16, VEC_BLOCK = 4 };
typedef __m512 vec;
struct wide {
    __m512d lo, hi;
};

/* Lanes 0 .. n - 1. */
VEC_INLINE __mmask16 vec_lanes(int n)
{
    return (__mmask16)(n >= 16 ? 0xffffU : (1U << n) - 1);
}
VEC_INLINE vec vec_set(float x)
{
    return _mm512_set1_ps(x);
}
VEC_INLINE vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
/* The first n, the others 0. */
VEC_INLINE vec vec_load_some(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(vec_lanes(n), p);
}
VEC_INLINE vec vec_load_bf16(const uint16_t *p, int n)
{
    __m256i half = _mm256_maskz_loadu_epi16(vec_lanes(n), p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
/* The first n of 2 VEC_WIDTH bf16, two to a lane, zeros beyond: vec_transpose moves pairs, then
 * vec_even and vec_odd take them apart. */
VEC_INLINE vec vec_load_two(const uint16_t *p, int n)
{
    __mmask32 lanes = n >= 32 ? 0xffffffffU : (1U << n) - 1;
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(lanes, p));
}
VEC_INLINE vec vec_even(vec x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 16));
}
VEC_INLINE vec vec_odd(vec x)
{
    __m512i high = _mm512_set1_epi32((int)0xffff0000U);
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), high));
}
VEC_INLINE void vec_store(float *p, vec x)
{
    _mm512_storeu_ps(p, x);
}
VEC_INLINE void vec_store_some(float *p, vec x, int n)
{
    _mm512_mask_storeu_ps(p, vec_lanes(n), x);
}
VEC_INLINE vec vec_add(vec x, vec y)
{
    return _mm512_add_ps(x, y);
}
VEC_INLINE vec vec_sub(vec x, vec y)
{
    return _mm512_sub_ps(x, y);
}
VEC_INLINE vec vec_mul(vec x, vec y)
{
    return _mm512_mul_ps(x, y);
}
VEC_INLINE vec vec_div(vec x, vec y)
{
    return _mm512_div_ps(x, y);
}
VEC_INLINE vec vec_fma(vec x, vec y, vec z)
{
    return _mm512_fmadd_ps(x, y, z);
}
/* y where either is a NaN. */
VEC_INLINE vec vec_max(vec x, vec y)
{
    return _mm512_max_ps(x, y);
}
VEC_INLINE vec vec_min(vec x, vec y)
{
    return _mm512_min_ps(x, y);
}
VEC_INLINE float vec_first(vec x)
{
    return _mm512_cvtss_f32(x);
}
VEC_INLINE float vec_largest(vec x)
{
    return _mm512_reduce_max_ps(x);
}
VEC_INLINE float vec_total(vec x)
{
    return _mm512_reduce_add_ps(x);
}
/* x in the first n lanes, y in the others. */
VEC_INLINE vec vec_pick(int n, vec x, vec y)
{
    return _mm512_mask_blend_ps(vec_lanes(n), y, x);
}
/* The nearest whole number, ties to even. */
VEC_INLINE vec vec_whole(vec x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* x * 2^n for a whole n. */
VEC_INLINE vec vec_scale(vec x, vec n)
{
    return _mm512_scalef_ps(x, n);
}
/* The nearest bf16 in the upper half of each lane; the lower half holds anything. */
VEC_INLINE __m512i vec_near(vec x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i near = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(near, nan, bits, _mm512_set1_epi32(0x400000));
}
VEC_INLINE vec vec_round(vec x)
{
    __m512i high = _mm512_set1_epi32((int)0xffff0000U);
    return _mm512_castsi512_ps(_mm512_and_si512(vec_near(x), high));
}
VEC_INLINE void vec_store_bf16(uint16_t *p, vec x)
{
    __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(vec_near(x), 16));
    _mm256_storeu_si256((__m256i *)(void *)p, half);
}
/* Sixteen pairs (cos, sin) apart. */
VEC_INLINE void vec_load_pairs(const float *p, vec *cos, vec *sin)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    __m512 x = _mm512_loadu_ps(p), y = _mm512_loadu_ps(p + 16);
    *cos = _mm512_permutex2var_ps(x, even, y);
    *sin = _mm512_permutex2var_ps(x, _mm512_add_epi32(even, _mm512_set1_epi32(1)), y);
}

VEC_INLINE void vec_unpack_four(const vec *x, vec *y)
{
    __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1]));
    __m512d b = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3]));
    __m512d c = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1]));
    __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
    y[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    y[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    y[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
    y[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
}
/* Element i of vector j becomes element j of vector i. */
VEC_INLINE void vec_transpose(vec x[VEC_WIDTH])
{
    vec y[16];
    for (int i = 0; i < 16; i += 4)
        vec_unpack_four(x + i, y + i);
    for (int i = 0; i < 4; i++) {
        vec a = _mm512_shuffle_f32x4(y[i], y[i + 4], 0x88);
        vec b = _mm512_shuffle_f32x4(y[i], y[i + 4], 0xdd);
        vec c = _mm512_shuffle_f32x4(y[i + 8], y[i + 12], 0x88);
        vec d = _mm512_shuffle_f32x4(y[i + 8], y[i + 12], 0xdd);
        x[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        x[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        x[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        x[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

#include "kernels/vector/block_of_four.inc"

VEC_INLINE struct wide wide_set(double x)
{
    return (struct wide){_mm512_set1_pd(x), _mm512_set1_pd(x)};
}
VEC_INLINE struct wide wide_of(vec x)
{
    return (struct wide){_mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                         _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))};
}
VEC_INLINE vec wide_narrow(struct wide x)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(x.lo)), _mm512_cvtpd_ps(x.hi),
                              1);
}
VEC_INLINE struct wide wide_add(struct wide x, struct wide y)
{
    return (struct wide){_mm512_add_pd(x.lo, y.lo), _mm512_add_pd(x.hi, y.hi)};
}
VEC_INLINE struct wide wide_sub(struct wide x, struct wide y)
{
    return (struct wide){_mm512_sub_pd(x.lo, y.lo), _mm512_sub_pd(x.hi, y.hi)};
}
VEC_INLINE struct wide wide_mul(struct wide x, struct wide y)
{
    return (struct wide){_mm512_mul_pd(x.lo, y.lo), _mm512_mul_pd(x.hi, y.hi)};
}
VEC_INLINE double wide_total(struct wide x)
{
    return _mm512_reduce_add_pd(_mm512_add_pd(x.lo, x.hi));
}

#endif
