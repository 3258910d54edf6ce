/* gemm_int4.c - the AVX-512 gemm_int4 kernel: its instructions (VNNI) and tile shapes for the
 * shared body.
 *
 * kernels/panels/gemm_int4.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this tier gives the same bits as every other CPU tier, whatever its tile shapes. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"
#include "kernels/int4.h"

#define INT4_TARGET \
    __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define INT4_INLINE static inline __attribute__((always_inline, unused)) INT4_TARGET

enum { INT4_MOST = 24 };

typedef __m512i int4_ints;

#include "kernels/panels/digits_x86.inc"

INT4_INLINE int4_ints int4_zeros(const char *at)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
}
INT4_INLINE vec int4_scales(const char *at)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
}
INT4_INLINE int4_ints int4_times(int4_ints x, int y)
{
    return _mm512_mullo_epi32(x, _mm512_set1_epi32(y));
}
INT4_INLINE vec int4_floats(int4_ints x)
{
    return _mm512_cvtepi32_ps(x);
}
INT4_INLINE int4_ints int4_words(const char *at)
{
    return _mm512_loadu_si512(at);
}
INT4_INLINE int4_ints int4_even(int4_ints words)
{
    return _mm512_and_si512(words, _mm512_set1_epi8(15));
}
INT4_INLINE int4_ints int4_odd(int4_ints words)
{
    return _mm512_and_si512(_mm512_srli_epi32(words, 4), _mm512_set1_epi8(15));
}
/* Inline assembly, because compilers (gcc 12) copy the sums that the intrinsic adds to, and load x
 * into a register first. */
INT4_INLINE int4_ints int4_dot(int4_ints sum, int4_ints even, int4_ints odd, const unsigned char *x)
{
    int4_word *two = (int4_word *)(const void *)x;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(even), "m"(two[0]));
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(odd), "m"(two[1]));
    return sum;
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 8, 3) INT4(2, 4, 3) INT4(3, 2, 3) INT4(4, 2, 3)
INT4(1, 1, 3) INT4(2, 1, 3) INT4(3, 1, 3) INT4(4, 1, 3) INT4(5, 1, 3) INT4(6, 1, 3) INT4(7, 1, 3) INT4(8, 1, 3)
INT4(1, 4, 2) INT4(2, 4, 2) INT4(3, 4, 2) INT4(4, 2, 2)
INT4(1, 1, 2) INT4(2, 1, 2) INT4(3, 1, 2) INT4(4, 1, 2) INT4(5, 1, 2) INT4(6, 1, 2) INT4(7, 1, 2) INT4(8, 1, 2)

static const struct int4_tiles three[] = {
    {8, int4_1_8_3, int4_1_1_3}, {4, int4_2_4_3, int4_2_1_3}, {2, int4_3_2_3, int4_3_1_3}, {2, int4_4_2_3, int4_4_1_3},
    {1, NULL, int4_5_1_3}, {1, NULL, int4_6_1_3}, {1, NULL, int4_7_1_3}, {1, NULL, int4_8_1_3}};
static const struct int4_tiles two[] = {
    {4, int4_1_4_2, int4_1_1_2}, {4, int4_2_4_2, int4_2_1_2}, {4, int4_3_4_2, int4_3_1_2}, {2, int4_4_2_2, int4_4_1_2},
    {1, NULL, int4_5_1_2}, {1, NULL, int4_6_1_2}, {1, NULL, int4_7_1_2}, {1, NULL, int4_8_1_2}};
/* clang-format on */
static const struct int4_shapes shapes[] = {{3, 8, three}, {2, 8, two}};

void tec_gemm_int4_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &shapes[a->digits == 2]);
}

#endif
