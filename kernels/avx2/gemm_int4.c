/* gemm_int4.c - the AVX2 gemm_int4 kernel: its instructions and tile shapes for the shared body.
 *
 * kernels/panels/gemm_int4.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this tier gives the same bits as every other CPU tier, whatever its tile shapes. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"
#include "kernels/int4.h"

#define INT4_TARGET VEC_TARGET
#define INT4_INLINE VEC_INLINE

enum { INT4_MOST = 12, INT4_ROWS = 4 };

typedef __m256i int4_ints;

INT4_INLINE int4_ints int4_zeros(const char *at)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at));
}
/* Plain C converts the float16 scales: once for each group it is not worth requiring one more
 * instruction set. */
INT4_INLINE vec int4_scales(const char *at)
{
    uint16_t bits[VEC_WIDTH];
    float scales[VEC_WIDTH];
    memcpy(bits, at, sizeof bits);
    for (int i = 0; i < VEC_WIDTH; i++)
        scales[i] = tec_half_float(bits[i]);
    return vec_load(scales);
}
INT4_INLINE int4_ints int4_times(int4_ints x, int y)
{
    return _mm256_mullo_epi32(x, _mm256_set1_epi32(y));
}
INT4_INLINE vec int4_floats(int4_ints x)
{
    return _mm256_cvtepi32_ps(x);
}
INT4_INLINE int4_ints int4_words(const char *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}
INT4_INLINE int4_ints int4_even(int4_ints words)
{
    return _mm256_and_si256(words, _mm256_set1_epi8(15));
}
INT4_INLINE int4_ints int4_odd(int4_ints words)
{
    return _mm256_and_si256(_mm256_srli_epi32(words, 4), _mm256_set1_epi8(15));
}
/* The sums in 16 bits are of four products of at most 15 * 128 each, so they do not overflow. */
INT4_INLINE int4_ints int4_dot(int4_ints sum, int4_ints even, int4_ints odd, const unsigned char *x)
{
    int two[2];
    memcpy(two, x, sizeof two);
    __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(even, _mm256_set1_epi32(two[0])),
                                     _mm256_maddubs_epi16(odd, _mm256_set1_epi32(two[1])));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include "kernels/panels/digits_x86.inc"
#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 2) INT4(2, 2)
INT4(1, 1) INT4(2, 1) INT4(3, 1) INT4(4, 1)

static const struct int4_tiles tiles[INT4_ROWS] = {
    {2, int4_1_2, int4_1_1}, {2, int4_2_2, int4_2_1}, {1, NULL, int4_3_1}, {1, NULL, int4_4_1}};
/* clang-format on */

void tec_gemm_int4_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, tiles);
}

#endif
