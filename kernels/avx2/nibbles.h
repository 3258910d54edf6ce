/* nibbles.h - words of 4-bit weights and their heads in AVX2, for both gemm_int4 kernels. */
#ifndef TEC_KERNELS_AVX2_NIBBLES_H
#define TEC_KERNELS_AVX2_NIBBLES_H

#include "kernels/avx2/panels.h"

typedef __m256i int4_ints;

VEC_INLINE int4_ints int4_zeros(const char *at)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at));
}
/* As tec_half_float, which one more instruction set has an instruction for: the exponent's bias
 * becomes float32's, twice of what is not finite; a number below the normal range is its mantissa
 * in units of 2^-24. */
VEC_INLINE vec int4_scales(const char *at)
{
    const __m256i bias = _mm256_set1_epi32(112 << 23);
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
    __m256i size = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fff));
    __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(size, 13), bias);
    __m256i infinite = _mm256_cmpgt_epi32(size, _mm256_set1_epi32(0x7bff));
    normal = _mm256_add_epi32(normal, _mm256_and_si256(infinite, bias));
    __m256i tiny =
        _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(size), _mm256_set1_ps(0x1p-24F)));
    __m256i is_tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x400), size);
    __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(bits, size), 16);
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_blendv_epi8(normal, tiny, is_tiny), sign));
}
VEC_INLINE int4_ints int4_times(int4_ints x, int y)
{
    return _mm256_mullo_epi32(x, _mm256_set1_epi32(y));
}
VEC_INLINE vec int4_floats(int4_ints x)
{
    return _mm256_cvtepi32_ps(x);
}
VEC_INLINE int4_ints int4_words(const char *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}
VEC_INLINE int4_ints int4_even(int4_ints words)
{
    return _mm256_and_si256(words, _mm256_set1_epi8(15));
}
VEC_INLINE int4_ints int4_odd(int4_ints words)
{
    return _mm256_and_si256(_mm256_srli_epi32(words, 4), _mm256_set1_epi8(15));
}

#endif
