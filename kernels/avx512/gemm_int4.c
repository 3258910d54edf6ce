#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"

enum { INT4_MOST = 16, INT4_GROUP = 8 };

VEC_INLINE vec int4_zeros(const char *at)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at)));
}
VEC_INLINE vec int4_scales(const char *at)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}
/* Nibble j of each word: a permutation looks at the lowest four bits of an index alone. */
VEC_INLINE vec int4_nibbles(const char *at, int j)
{
    const __m512 numbers = _mm512_set_ps(15.0F, 14.0F, 13.0F, 12.0F, 11.0F, 10.0F, 9.0F, 8.0F, 7.0F,
                                         6.0F, 5.0F, 4.0F, 3.0F, 2.0F, 1.0F, 0.0F);
    __m512i words = _mm512_loadu_si512(at);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(words, (unsigned)(4 * j)), numbers);
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 4) INT4(2, 4) INT4(3, 4) INT4(4, 4) INT4(5, 2) INT4(6, 2) INT4(7, 2) INT4(8, 2)
INT4(1, 1) INT4(2, 1) INT4(3, 1) INT4(4, 1) INT4(5, 1) INT4(6, 1) INT4(7, 1) INT4(8, 1)
    /* clang-format on */

    static const struct int4_tiles tiles[] = {{4, int4_1_4, int4_1_1}, {4, int4_2_4, int4_2_1},
                                              {4, int4_3_4, int4_3_1}, {4, int4_4_4, int4_4_1},
                                              {2, int4_5_2, int4_5_1}, {2, int4_6_2, int4_6_1},
                                              {2, int4_7_2, int4_7_1}, {2, int4_8_2, int4_8_1}};

void tec_gemm_int4_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, tiles, 8);
}

#endif
