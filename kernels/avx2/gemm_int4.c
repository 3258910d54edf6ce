/* gemm_int4.c - the AVX2 gemm_int4 kernel: its instructions and tile shapes for the shared body.
 *
 * kernels/panels/gemm_int4.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this tier gives the same bits as every other CPU tier, whatever its tile shapes. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"

#define INT4_TARGET VEC_TARGET
#define INT4_INLINE VEC_INLINE

enum { INT4_MOST = 12 };

#include "kernels/avx2/nibbles.h"
#include "kernels/panels/digits_x86.inc"

/* The sums in 16 bits are of four products of at most 15 * 128 each, so they do not overflow. */
INT4_INLINE int4_ints int4_dot(int4_ints sum, int4_ints even, int4_ints odd, const unsigned char *x)
{
    int4_word *two = (int4_word *)(const void *)x;
    __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(even, _mm256_set1_epi32(two[0])),
                                     _mm256_maddubs_epi16(odd, _mm256_set1_epi32(two[1])));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 2, 3) INT4(2, 2, 3) INT4(1, 2, 2) INT4(2, 2, 2)
INT4(1, 1, 3) INT4(2, 1, 3) INT4(3, 1, 3) INT4(4, 1, 3)
INT4(1, 1, 2) INT4(2, 1, 2) INT4(3, 1, 2) INT4(4, 1, 2) INT4(5, 1, 2) INT4(6, 1, 2)

static const struct int4_tiles three[] = {
    {2, int4_1_2_3, int4_1_1_3}, {2, int4_2_2_3, int4_2_1_3}, {1, NULL, int4_3_1_3}, {1, NULL, int4_4_1_3}};
static const struct int4_tiles two[] = {
    {2, int4_1_2_2, int4_1_1_2}, {2, int4_2_2_2, int4_2_1_2}, {1, NULL, int4_3_1_2}, {1, NULL, int4_4_1_2},
    {1, NULL, int4_5_1_2}, {1, NULL, int4_6_1_2}};
/* clang-format on */
static const struct int4_shapes shapes[] = {{3, 4, three}, {2, 6, two}};

void tec_gemm_int4_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &shapes[a->digits == 2]);
}

#endif
