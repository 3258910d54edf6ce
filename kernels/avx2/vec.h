/* vec.h - eight floats at a time: the vector that kernels/vector/ is written over.
 *
 * Every vec.h defines the same names: VEC_WIDTH floats in a `vec`, a `block` of VEC_BLOCK vectors
 * (as many as the registers hold six of beside their operands), a `wide` of as many doubles. */
#ifndef TEC_KERNELS_AVX2_VEC_H
#define TEC_KERNELS_AVX2_VEC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VEC_TARGET __attribute__((target("avx2,fma")))
#define VEC_INLINE static inline __attribute__((always_inline, unused)) VEC_TARGET
#define VEC_NAME(kernel) tec_##kernel##_avx2

enum { VEC_WIDTH = 8, VEC_BLOCK = 2 };
typedef __m256 vec;
struct block {
    vec a, b;
};
struct wide {
    __m256d lo, hi;
};

/* Lanes 0 .. n - 1. */
VEC_INLINE __m256i vec_lanes(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
VEC_INLINE vec vec_set(float x)
{
    return _mm256_set1_ps(x);
}
VEC_INLINE vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
/* The first n, the others 0. */
VEC_INLINE vec vec_load_some(const float *p, int n)
{
    return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, vec_lanes(n));
}
VEC_INLINE vec vec_load_bf16(const uint16_t *p, int n)
{
    __m128i half;
    if (n >= 8) {
        half = _mm_loadu_si128((const __m128i *)(const void *)p);
    } else {
        uint16_t some[8] = {0};
        memcpy(some, p, (size_t)n * sizeof *p);
        half = _mm_loadu_si128((const __m128i *)(const void *)some);
    }
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
/* The first n of 2 VEC_WIDTH bf16, two to a lane, zeros beyond: vec_transpose moves pairs, then
 * vec_even and vec_odd take them apart. */
VEC_INLINE vec vec_load_two(const uint16_t *p, int n)
{
    uint16_t some[16] = {0};
    if (n >= 16)
        return _mm256_loadu_ps((const float *)(const void *)p);
    memcpy(some, p, (size_t)n * sizeof *p);
    return _mm256_loadu_ps((const float *)(const void *)some);
}
VEC_INLINE vec vec_even(vec x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 16));
}
VEC_INLINE vec vec_odd(vec x)
{
    __m256i high = _mm256_set1_epi32((int)0xffff0000U);
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(x), high));
}
VEC_INLINE void vec_store(float *p, vec x)
{
    _mm256_storeu_ps(p, x);
}
VEC_INLINE void vec_store_some(float *p, vec x, int n)
{
    if (n >= 8) /* masked stores are slow on some cores */
        _mm256_storeu_ps(p, x);
    else
        _mm256_maskstore_ps(p, vec_lanes(n), x);
}
VEC_INLINE vec vec_add(vec x, vec y)
{
    return _mm256_add_ps(x, y);
}
VEC_INLINE vec vec_sub(vec x, vec y)
{
    return _mm256_sub_ps(x, y);
}
VEC_INLINE vec vec_mul(vec x, vec y)
{
    return _mm256_mul_ps(x, y);
}
VEC_INLINE vec vec_div(vec x, vec y)
{
    return _mm256_div_ps(x, y);
}
VEC_INLINE vec vec_fma(vec x, vec y, vec z)
{
    return _mm256_fmadd_ps(x, y, z);
}
/* y where either is a NaN. */
VEC_INLINE vec vec_max(vec x, vec y)
{
    return _mm256_max_ps(x, y);
}
VEC_INLINE vec vec_min(vec x, vec y)
{
    return _mm256_min_ps(x, y);
}
VEC_INLINE float vec_first(vec x)
{
    return _mm256_cvtss_f32(x);
}
VEC_INLINE float vec_largest(vec x)
{
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
VEC_INLINE float vec_total(vec x)
{
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
/* x in the first n lanes, y in the others. */
VEC_INLINE vec vec_pick(int n, vec x, vec y)
{
    return _mm256_blendv_ps(y, x, _mm256_castsi256_ps(vec_lanes(n)));
}
/* The nearest whole number, ties to even. */
VEC_INLINE vec vec_whole(vec x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* x * 2^n for a whole n in -250 .. 250, in two steps since 2^n alone may not be a float. */
VEC_INLINE vec vec_scale(vec x, vec n)
{
    __m256i whole = _mm256_cvtps_epi32(n), bias = _mm256_set1_epi32(127);
    __m256i one = _mm256_srai_epi32(whole, 1), two = _mm256_sub_epi32(whole, one);
    one = _mm256_slli_epi32(_mm256_add_epi32(one, bias), 23);
    two = _mm256_slli_epi32(_mm256_add_epi32(two, bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(one)), _mm256_castsi256_ps(two));
}
/* The nearest bf16 in the upper half of each lane; the lower half holds anything. */
VEC_INLINE __m256i vec_near(vec x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i near = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    return _mm256_blendv_epi8(near, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
VEC_INLINE vec vec_round(vec x)
{
    __m256i high = _mm256_set1_epi32((int)0xffff0000U);
    return _mm256_castsi256_ps(_mm256_and_si256(vec_near(x), high));
}
VEC_INLINE void vec_store_bf16(uint16_t *p, vec x)
{
    __m256i bits = _mm256_srli_epi32(vec_near(x), 16);
    __m128i half =
        _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    _mm_storeu_si128((__m128i *)(void *)p, half);
}
/* Eight pairs (cos, sin) apart. */
VEC_INLINE void vec_load_pairs(const float *p, vec *cos, vec *sin)
{
    __m256 x = _mm256_loadu_ps(p), y = _mm256_loadu_ps(p + 8);
    __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(x, y, 0x88));
    __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(x, y, 0xdd));
    *cos = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
    *sin = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
}

VEC_INLINE void vec_unpack_four(const vec *x, vec *y)
{
    __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(x[0], x[1]));
    __m256d b = _mm256_castps_pd(_mm256_unpacklo_ps(x[2], x[3]));
    __m256d c = _mm256_castps_pd(_mm256_unpackhi_ps(x[0], x[1]));
    __m256d d = _mm256_castps_pd(_mm256_unpackhi_ps(x[2], x[3]));
    y[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
    y[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
    y[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(c, d));
    y[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(c, d));
}
/* Element i of vector j becomes element j of vector i. */
VEC_INLINE void vec_transpose(vec x[VEC_WIDTH])
{
    vec y[8];
    vec_unpack_four(x, y);
    vec_unpack_four(x + 4, y + 4);
    for (int i = 0; i < 4; i++) {
        x[i] = _mm256_permute2f128_ps(y[i], y[i + 4], 0x20);
        x[i + 4] = _mm256_permute2f128_ps(y[i], y[i + 4], 0x31);
    }
}

VEC_INLINE struct block block_zero(void)
{
    return (struct block){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
VEC_INLINE struct block block_load(const float *p)
{
    return (struct block){vec_load(p), vec_load(p + 8)};
}
VEC_INLINE void block_store(float *p, struct block x)
{
    vec_store(p, x.a);
    vec_store(p + 8, x.b);
}
VEC_INLINE struct block block_mul(struct block x, vec y)
{
    return (struct block){vec_mul(x.a, y), vec_mul(x.b, y)};
}
/* x * y + z for one x. */
VEC_INLINE struct block block_fma(vec x, struct block y, struct block z)
{
    return (struct block){vec_fma(x, y.a, z.a), vec_fma(x, y.b, z.b)};
}

VEC_INLINE struct wide wide_set(double x)
{
    return (struct wide){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}
VEC_INLINE struct wide wide_of(vec x)
{
    return (struct wide){_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                         _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}
VEC_INLINE vec wide_narrow(struct wide x)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(x.lo)),
                                _mm256_cvtpd_ps(x.hi), 1);
}
VEC_INLINE struct wide wide_add(struct wide x, struct wide y)
{
    return (struct wide){_mm256_add_pd(x.lo, y.lo), _mm256_add_pd(x.hi, y.hi)};
}
VEC_INLINE struct wide wide_sub(struct wide x, struct wide y)
{
    return (struct wide){_mm256_sub_pd(x.lo, y.lo), _mm256_sub_pd(x.hi, y.hi)};
}
VEC_INLINE struct wide wide_mul(struct wide x, struct wide y)
{
    return (struct wide){_mm256_mul_pd(x.lo, y.lo), _mm256_mul_pd(x.hi, y.hi)};
}
VEC_INLINE double wide_total(struct wide x)
{
    __m256d y = _mm256_add_pd(x.lo, x.hi);
    __m128d z = _mm_add_pd(_mm256_castpd256_pd128(y), _mm256_extractf128_pd(y, 1));
    return _mm_cvtsd_f64(_mm_add_sd(z, _mm_unpackhi_pd(z, z)));
}

#endif
