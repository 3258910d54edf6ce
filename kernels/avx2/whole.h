/* whole.h - whole numbers of 16 and 32 bits for kernels/vector/, in AVX2. */
#ifndef TEC_KERNELS_AVX2_WHOLE_H
#define TEC_KERNELS_AVX2_WHOLE_H

#include "kernels/avx2/vec.h"
#include "kernels/unroll.h"

/* 8 of 32 bits, or as many pairs of 16. */
typedef __m256i whole;

VEC_INLINE whole whole_zero(void)
{
    return _mm256_setzero_si256();
}
VEC_INLINE whole whole_load(const int32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}
VEC_INLINE void whole_keep(int32_t *to, whole x)
{
    _mm256_storeu_si256((__m256i *)(void *)to, x);
}
VEC_INLINE vec whole_vec(whole x)
{
    return _mm256_cvtepi32_ps(x);
}
/* x 2^n for the n in the lowest bits of `n`, whatever is above them. */
VEC_INLINE vec whole_times(vec x, vec n)
{
    __m256i power = _mm256_slli_epi32(_mm256_castps_si256(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), power));
}
/* The larger magnitude; a NaN where either is one. */
VEC_INLINE vec whole_most(vec most, vec x)
{
    __m256i size = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(most), size));
}
/* The nearest whole numbers, in 16 bits. */
VEC_INLINE void whole_store(int16_t *to, vec x)
{
    __m256i all = _mm256_cvtps_epi32(x);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_packs_epi32(_mm256_castsi256_si128(all),
                                                            _mm256_extracti128_si256(all, 1)));
}
/* Those of x in the lower halves, those of y in the upper ones. */
VEC_INLINE whole whole_pairs(vec x, vec y)
{
    return _mm256_blend_epi16(_mm256_cvtps_epi32(x), _mm256_slli_epi32(_mm256_cvtps_epi32(y), 16),
                              0xaa);
}
/* Lane i of the result is all lanes of x[i] added, or the largest of them: i < 8. */
VEC_INLINE vec whole_totals(const vec *x)
{
    float all[8];
    for (int i = 0; i < 8; i++)
        all[i] = vec_total(x[i]);
    return vec_load(all);
}
VEC_INLINE vec whole_largests(const vec *x)
{
    float all[8];
    for (int i = 0; i < 8; i++)
        all[i] = vec_largest(x[i]);
    return vec_load(all);
}
/* Adds to each sum both products of its pair and the one at x. */
VEC_INLINE void whole_dot(whole *sum, whole pairs, const int32_t *x)
{
    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, _mm256_set1_epi32(*x)));
}

#endif
