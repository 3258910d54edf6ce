/* gemm_int8_vnni.c - the AVX2 gemm_int8 kernel for processors with AVX-VNNI: dot products of bytes
 * without AVX-512.
 *
 * kernels/panels/gemm_int8.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this kernel gives the same bits as every other of the CPU, whatever its tile shapes. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"

#define INT8_TARGET __attribute__((target("avx2,fma,avxvnni")))
#define INT8_INLINE static inline __attribute__((always_inline, unused)) INT8_TARGET

enum { INT8_BYTES = 1, INT8_SUMS = 1, INT8_MOST = 12 };

typedef __m256i int8_ints;
typedef __m256i int8_weights;

#include "kernels/panels/rows_x86.inc"

/* The sums of one digit begin where those of low digits do. */
INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head, const int digits)
{
    int8_word *begin = (int8_word *)(const void *)(head + offsetof(struct int8_head, begin));
    if (digits == 2)
        sums[1] = _mm256_set1_epi32(begin[1]);
    sums[0] = _mm256_set1_epi32(begin[2 - digits]);
}
/* Raised by 128: the bytes of weights that products take have no sign. */
INT8_INLINE int8_weights int8_load(const char *at)
{
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)at),
                            _mm256_set1_epi8((char)0x80));
}
/* Inline assembly, because compilers (gcc 12) copy the sums that the intrinsic adds to. */
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x, const int digits)
{
    int8_word *four = (int8_word *)(const void *)x;
    TEC_UNROLL
    for (int d = 0; d < digits; d++) {
        __m256i all = _mm256_set1_epi32(four[d]);
        __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums[d]) : "x"(w), "x"(all));
    }
}
INT8_INLINE vec int8_total(const int8_ints *sums, const int digits)
{
    if (digits == 1)
        return _mm256_cvtepi32_ps(sums[0]);
    return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(sums[0], 8), sums[1]));
}

#include "kernels/panels/gemm_int8.inc"

/* clang-format off */
INT8(1, 4, 2) INT8(2, 2, 2) INT8(3, 2, 2)
INT8(1, 1, 2) INT8(2, 1, 2) INT8(3, 1, 2) INT8(4, 1, 2) INT8(5, 1, 2) INT8(6, 1, 2)
INT8(1, 8, 1) INT8(2, 4, 1) INT8(3, 4, 1) INT8(4, 2, 1) INT8(5, 2, 1) INT8(6, 2, 1)
INT8(1, 1, 1) INT8(2, 1, 1) INT8(3, 1, 1) INT8(4, 1, 1) INT8(5, 1, 1) INT8(6, 1, 1)

static const struct int8_tiles one[] = {
    {8, int8_1_8_1, int8_1_1_1}, {4, int8_2_4_1, int8_2_1_1}, {4, int8_3_4_1, int8_3_1_1},
    {2, int8_4_2_1, int8_4_1_1}, {2, int8_5_2_1, int8_5_1_1}, {2, int8_6_2_1, int8_6_1_1}};
static const struct int8_tiles two[] = {
    {4, int8_1_4_2, int8_1_1_2}, {2, int8_2_2_2, int8_2_1_2}, {2, int8_3_2_2, int8_3_1_2},
    {1, NULL, int8_4_1_2}, {1, NULL, int8_5_1_2}, {1, NULL, int8_6_1_2}};
/* clang-format on */
static const struct int8_shapes shapes[] = {{6, one}, {6, two}};

void tec_vnni_gemm_int8_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int8(a, part, shapes);
}

#endif
