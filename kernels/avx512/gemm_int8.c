/* gemm_int8.c - the AVX-512 gemm_int8 kernel: its instructions (VNNI) and tile shapes for the
 * shared body.
 *
 * kernels/panels/gemm_int8.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this tier gives the same bits as every other CPU tier, whatever its tile shapes. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"

#define INT8_TARGET \
    __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define INT8_INLINE static inline __attribute__((always_inline, unused)) INT8_TARGET

enum { INT8_BYTES = 1, INT8_SUMS = 2, INT8_MOST = 24, INT8_ROWS = 8 };

typedef __m512i int8_ints;
typedef __m512i int8_weights;

#include "kernels/panels/rows_x86.inc"

INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head)
{
    int8_word *begin = (int8_word *)(const void *)(head + offsetof(struct int8_head, begin));
    sums[0] = _mm512_set1_epi32(begin[0]);
    sums[1] = _mm512_set1_epi32(begin[1]);
}
/* Raised by 128: the bytes of weights that products take have no sign. */
INT8_INLINE int8_weights int8_load(const char *at)
{
    return _mm512_xor_si512(_mm512_loadu_si512(at), _mm512_set1_epi8((char)0x80));
}
/* Inline assembly, because compilers (gcc 12) copy the sums that the intrinsic adds to, and load x
 * into a register first. */
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x)
{
    int8_word *two = (int8_word *)(const void *)x;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums[0]) : "v"(w), "m"(two[0]));
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums[1]) : "v"(w), "m"(two[1]));
}
INT8_INLINE vec int8_total(const int8_ints *sums)
{
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(sums[0], 8), sums[1]));
}

#include "kernels/panels/gemm_int8.inc"

/* clang-format off */
INT8(1, 8) INT8(2, 4) INT8(3, 4) INT8(4, 2)
INT8(1, 1) INT8(2, 1) INT8(3, 1) INT8(4, 1) INT8(5, 1) INT8(6, 1) INT8(7, 1) INT8(8, 1)

static const struct int8_tiles tiles[INT8_ROWS] = {
    {8, int8_1_8, int8_1_1}, {4, int8_2_4, int8_2_1}, {4, int8_3_4, int8_3_1}, {2, int8_4_2, int8_4_1},
    {1, NULL, int8_5_1}, {1, NULL, int8_6_1}, {1, NULL, int8_7_1}, {1, NULL, int8_8_1}};
/* clang-format on */

void tec_gemm_int8_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int8(a, part, tiles);
}

#endif
