/* gemm_int4_vnni.c - the AVX2 gemm_int4 kernel for processors with AVX-VNNI: dot products of bytes
 * without AVX-512.
 *
 * kernels/panels/gemm_int4.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this kernel gives the same bits as every other of the CPU, whatever its tile shapes. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"

#define INT4_TARGET __attribute__((target("avx2,fma,avxvnni")))
#define INT4_INLINE static inline __attribute__((always_inline, unused)) INT4_TARGET

enum { INT4_MOST = 12 };

#include "kernels/avx2/nibbles.h"
#include "kernels/panels/digits_x86.inc"

/* Inline assembly, because compilers (gcc 12) copy the sums that the intrinsic adds to. */
INT4_INLINE int4_ints int4_dot(int4_ints sum, int4_ints even, int4_ints odd, const unsigned char *x)
{
    int4_word *two = (int4_word *)(const void *)x;
    __m256i of_even = _mm256_set1_epi32(two[0]), of_odd = _mm256_set1_epi32(two[1]);
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(even), "x"(of_even));
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(odd), "x"(of_odd));
    return sum;
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 4, 3) INT4(2, 2, 3) INT4(1, 4, 2) INT4(2, 2, 2) INT4(3, 2, 2)
INT4(1, 1, 3) INT4(2, 1, 3) INT4(3, 1, 3) INT4(4, 1, 3)
INT4(1, 1, 2) INT4(2, 1, 2) INT4(3, 1, 2) INT4(4, 1, 2) INT4(5, 1, 2) INT4(6, 1, 2)

static const struct int4_tiles three[] = {
    {4, int4_1_4_3, int4_1_1_3}, {2, int4_2_2_3, int4_2_1_3}, {1, NULL, int4_3_1_3}, {1, NULL, int4_4_1_3}};
static const struct int4_tiles two[] = {
    {4, int4_1_4_2, int4_1_1_2}, {2, int4_2_2_2, int4_2_1_2}, {2, int4_3_2_2, int4_3_1_2},
    {1, NULL, int4_4_1_2}, {1, NULL, int4_5_1_2}, {1, NULL, int4_6_1_2}};
/* clang-format on */
static const struct int4_shapes shapes[] = {{3, 4, three}, {2, 6, two}};

void tec_vnni_gemm_int4_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &shapes[a->digits == 2]);
}

#endif
