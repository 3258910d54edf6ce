#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"
#include "kernels/int4.h"

/* Vectors of sums; rows of the largest tile that is unpacked in registers; passes of those. */
enum { INT4_MOST = 8, INT4_ROWS = 4, INT4_PASSES = 2 };

typedef __m256i int4_words;

VEC_INLINE vec int4_zeros(const char *at)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at)));
}
/* Once a group: not worth an instruction set of its own. */
VEC_INLINE vec int4_scales(const char *at)
{
    uint16_t bits[VEC_WIDTH];
    float scales[VEC_WIDTH];
    memcpy(bits, at, sizeof bits);
    for (int i = 0; i < VEC_WIDTH; i++)
        scales[i] = tec_half_float(bits[i]);
    return vec_load(scales);
}
VEC_INLINE int4_words int4_shifted(const char *at, int bits)
{
    return _mm256_srli_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at), bits);
}
/* 2^(23 - 4 place) + the nibble that lies at bit 4 place. */
VEC_INLINE vec int4_raised(int4_words words, int place)
{
    const __m256i mask = _mm256_set1_epi32(15 << (4 * place));
    const __m256i exponent = _mm256_set1_epi32((127 + 23 - 4 * place) << 23);
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_and_si256(words, mask), exponent));
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 2) INT4(1, 1) INT4(2, 1) INT4(3, 1) INT4(4, 1)
MANY(1, 1) MANY(2, 1) MANY(3, 1) MANY(4, 1) MANY(5, 1) MANY(6, 1)
    /* clang-format on */

    static const
    struct int4_tiles tiles = {{{2, int4_1_2, int4_1_1},
                                {1, int4_2_1, int4_2_1},
                                {1, int4_3_1, int4_3_1},
                                {1, int4_4_1, int4_4_1}},
                               {{many_1_1, many_2_1, many_3_1, many_4_1, many_5_1, many_6_1}}};

void tec_gemm_int4_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &tiles);
}

#endif
