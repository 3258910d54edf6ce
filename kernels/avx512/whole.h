/* whole.h - whole numbers of 16 and 32 bits in vectors of AVX-512 with VNNI: attention_whole.c. */
#ifndef TEC_KERNELS_AVX512_WHOLE_H
#define TEC_KERNELS_AVX512_WHOLE_H

#include "kernels/avx512/vec.h"
#include "kernels/unroll.h"

/* 16 of 32 bits, or as many pairs of 16. */
typedef __m512i whole;

VEC_INLINE whole whole_zero(void)
{
    return _mm512_setzero_si512();
}
VEC_INLINE whole whole_load(const int32_t *from)
{
    return _mm512_loadu_si512(from);
}
VEC_INLINE void whole_keep(int32_t *to, whole x)
{
    _mm512_storeu_si512(to, x);
}
VEC_INLINE vec whole_vec(whole x)
{
    return _mm512_cvtepi32_ps(x);
}
/* x 2^n for the n in the lowest bits of `n`, whatever is above them. */
VEC_INLINE vec whole_times(vec x, vec n)
{
    __m512i power = _mm512_slli_epi32(_mm512_castps_si512(n), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), power));
}
/* 2^x, x <= 0 and below -120 as if it were that: 2^n (1 + f p(f)), n the whole number nearest to x,
 * which is what the last bits of x + 1.5 2^23 are. p has degree 3 and meets (2^f - 1) / f at its
 * four Chebyshev points: within 2^-17 of the result. */
VEC_INLINE vec whole_power(vec x)
{
    const vec large = vec_set(0x1.8p23F);
    x = vec_max(vec_set(-120), x);
    vec n = vec_add(x, large), f = vec_sub(x, vec_sub(n, large)), p = vec_set(0x1.3c6e5cp-7F);
    p = vec_fma(p, f, vec_set(0x1.c96d5ep-5F));
    p = vec_fma(p, f, vec_set(0x1.ebfb3ep-3F));
    p = vec_fma(p, f, vec_set(0x1.62e2d2p-1F));
    return whole_times(vec_fma(p, f, vec_set(1)), n);
}

/* The larger magnitude; a NaN where either is one. */
VEC_INLINE vec whole_most(vec most, vec x)
{
    __m512i size = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(most), size));
}
/* The nearest whole numbers, in 16 bits. */
VEC_INLINE void whole_store(int16_t *to, vec x)
{
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x)));
}
/* Those of x in the lower halves, those of y in the upper ones. */
VEC_INLINE whole whole_pairs(vec x, vec y)
{
    __m512i low = _mm512_and_si512(_mm512_cvtps_epi32(x), _mm512_set1_epi32(0xffff));
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtps_epi32(y), 16));
}
VEC_INLINE vec whole_low(vec x, vec y)
{
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
VEC_INLINE vec whole_high(vec x, vec y)
{
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
/* Lane i of the result is all lanes of x[i] added, or the largest of them: i < 8. */
#define WHOLE_ACROSS(name, both)                                                                  \
    VEC_INLINE vec name(const vec *x)                                                             \
    {                                                                                             \
        vec two[4], all;                                                                          \
        TEC_UNROLL                                                                                \
        for (size_t i = 0; i < 4; i++)                                                            \
            two[i] = both(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]),                             \
                          _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]));                            \
        vec low = both(whole_low(two[0], two[1]), whole_high(two[0], two[1]));                    \
        vec high = both(whole_low(two[2], two[3]), whole_high(two[2], two[3]));                   \
        all = both(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xdd)); \
        return both(_mm512_shuffle_f32x4(all, all, 0x88), _mm512_shuffle_f32x4(all, all, 0xdd));  \
    }
WHOLE_ACROSS(whole_totals, vec_add)
WHOLE_ACROSS(whole_largests, vec_max)

/* The pair at x in every lane. Products that read it from memory themselves load it once each, and
 * then loads are what limits them. */
VEC_INLINE whole whole_every(const int32_t *x)
{
    return _mm512_set1_epi32(*x);
}
/* Adds to each sum both products of its pair and the other one. Inline assembly, because compilers
 * (gcc 12) copy the sums that the intrinsic adds to. */
VEC_INLINE void whole_dot(whole *sum, whole pairs, whole every)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(*sum) : "v"(pairs), "v"(every));
}

#endif
