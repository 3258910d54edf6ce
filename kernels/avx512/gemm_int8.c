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

enum { INT8_BYTES = 1, INT8_SUMS = 1, INT8_MOST = 24 };

typedef __m512i int8_ints;
typedef __m512i int8_weights;

#include "kernels/panels/rows_x86.inc"

/* The sums of one digit begin where those of low digits do. No loop over digits, here and in
 * int8_dot: gcc 12 gives each digit addresses of its own then, more than there are registers. */
INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head, const int digits)
{
    int8_word *begin = (int8_word *)(const void *)(head + offsetof(struct int8_head, begin));
    if (digits == 2)
        sums[1] = _mm512_set1_epi32(begin[1]);
    sums[0] = _mm512_set1_epi32(begin[2 - digits]);
}
/* Raised by 128: the bytes of weights that products take have no sign. */
INT8_INLINE int8_weights int8_load(const char *at)
{
    return _mm512_xor_si512(_mm512_loadu_si512(at), _mm512_set1_epi8((char)0x80));
}
/* Inline assembly, because compilers (gcc 12) copy the sums that the intrinsic adds to, and load x
 * into a register first. */
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x, const int digits)
{
    int8_word *four = (int8_word *)(const void *)x;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums[0]) : "v"(w), "m"(four[0]));
    if (digits == 2)
        __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums[1]) : "v"(w), "m"(four[1]));
}
INT8_INLINE vec int8_total(const int8_ints *sums, const int digits)
{
    if (digits == 1)
        return _mm512_cvtepi32_ps(sums[0]);
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(sums[0], 8), sums[1]));
}

#include "kernels/panels/gemm_int8.inc"

/* clang-format off */
INT8(1, 8, 2) INT8(2, 4, 2) INT8(3, 4, 2) INT8(4, 2, 2)
INT8(1, 1, 2) INT8(2, 1, 2) INT8(3, 1, 2) INT8(4, 1, 2) INT8(5, 1, 2) INT8(6, 1, 2) INT8(7, 1, 2) INT8(8, 1, 2)
INT8(1, 4, 1) INT8(2, 8, 1) INT8(3, 8, 1) INT8(4, 4, 1) INT8(5, 4, 1) INT8(6, 4, 1) INT8(7, 2, 1) INT8(8, 2, 1)
INT8(1, 1, 1) INT8(2, 1, 1) INT8(3, 1, 1) INT8(4, 1, 1) INT8(5, 1, 1) INT8(6, 1, 1) INT8(7, 1, 1) INT8(8, 1, 1)

static const struct int8_tiles one[] = {
    {4, int8_1_4_1, int8_1_1_1}, {8, int8_2_8_1, int8_2_1_1}, {8, int8_3_8_1, int8_3_1_1}, {4, int8_4_4_1, int8_4_1_1},
    {4, int8_5_4_1, int8_5_1_1}, {4, int8_6_4_1, int8_6_1_1}, {2, int8_7_2_1, int8_7_1_1}, {2, int8_8_2_1, int8_8_1_1}};
static const struct int8_tiles two[] = {
    {8, int8_1_8_2, int8_1_1_2}, {4, int8_2_4_2, int8_2_1_2}, {4, int8_3_4_2, int8_3_1_2}, {2, int8_4_2_2, int8_4_1_2},
    {1, NULL, int8_5_1_2}, {1, NULL, int8_6_1_2}, {1, NULL, int8_7_1_2}, {1, NULL, int8_8_1_2}};
/* clang-format on */
static const struct int8_shapes shapes[] = {{8, one}, {8, two}};

void tec_gemm_int8_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int8(a, part, shapes);
}

#endif
