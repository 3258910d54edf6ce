#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"

/* Vectors of sums; rows of the largest tile that is unpacked in registers; passes of those. */
enum { INT4_MOST = 16, INT4_ROWS = 8, INT4_PASSES = 2 };

typedef __m512i int4_words;

VEC_INLINE vec int4_zeros(const char *at)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at)));
}
VEC_INLINE vec int4_scales(const char *at)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}
VEC_INLINE int4_words int4_shifted(const char *at, int bits)
{
    return _mm512_srli_epi32(_mm512_loadu_si512(at), (unsigned)bits);
}
/* 2^(23 - 4 place) + the nibble that lies at bit 4 place: (words & mask) | exponent. */
VEC_INLINE vec int4_raised(int4_words words, int place)
{
    const __m512i mask = _mm512_set1_epi32(15 << (4 * place));
    const __m512i exponent = _mm512_set1_epi32((127 + 23 - 4 * place) << 23);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(words, mask, exponent, 0xea));
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 4) INT4(2, 4) INT4(3, 4) INT4(4, 4) INT4(5, 2) INT4(6, 2) INT4(7, 2) INT4(8, 2)
INT4(1, 1) INT4(2, 1) INT4(3, 1) INT4(4, 1) INT4(5, 1) INT4(6, 1) INT4(7, 1) INT4(8, 1)
MANY(1, 1) MANY(2, 1) MANY(3, 1) MANY(4, 1) MANY(5, 1) MANY(6, 1) MANY(7, 1)
MANY(8, 1) MANY(9, 1) MANY(10, 1) MANY(11, 1) MANY(12, 1) MANY(13, 1)
MANY(1, 2) MANY(2, 2) MANY(3, 2) MANY(4, 2) MANY(5, 2) MANY(6, 2) MANY(7, 2)
MANY(8, 2) MANY(9, 2) MANY(10, 2) MANY(11, 2) MANY(12, 2) MANY(13, 2)

static const struct int4_tiles tiles = {
    {{4, int4_1_4, int4_1_1}, {4, int4_2_4, int4_2_1}, {4, int4_3_4, int4_3_1},
     {4, int4_4_4, int4_4_1}, {2, int4_5_2, int4_5_1}, {2, int4_6_2, int4_6_1},
     {2, int4_7_2, int4_7_1}, {2, int4_8_2, int4_8_1}},
    {{many_1_1, many_2_1, many_3_1, many_4_1, many_5_1, many_6_1, many_7_1, many_8_1, many_9_1,
      many_10_1, many_11_1, many_12_1, many_13_1},
     {many_1_2, many_2_2, many_3_2, many_4_2, many_5_2, many_6_2, many_7_2, many_8_2, many_9_2,
      many_10_2, many_11_2, many_12_2, many_13_2}}};
/* clang-format on */

void tec_gemm_int4_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &tiles);
}

#endif
