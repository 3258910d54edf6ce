/* gemm_int4_mm.c - the NEON gemm_int4 kernel for processors with products of matrices of bytes
 * (`i8mm`, Cortex-X2 and Neoverse V1 and newer): its instructions and tile shapes for the shared
 * body.
 *
 * kernels/panels/gemm_int4.inc has the algorithm. As in gemm_int8_mm.c the two rows of a `smmla`
 * are two digits of one row of x, which lie side by side already; its two columns are nibbles of
 * even and of odd k that meet when they are taken apart. A third digit takes dot products. Sums
 * over a group are whole numbers, hence exact, so the bits are those of every kernel. The build
 * compiles this file alone for such processors. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"

#define INT4_TARGET VEC_TARGET
#define INT4_INLINE VEC_INLINE
#define INT4_OWN_PRODUCTS

enum { INT4_MOST = 24 };

#include "kernels/neon/digits.h"
#include "kernels/neon/nibbles.h"

typedef struct {
    int8x16_t even, odd; /* four k of four columns each */
    int8x16_t low, high; /* those of two columns each */
} int4_weights;

INT4_INLINE int4_weights int4_load(const char *at)
{
    int4_ints words = int4_words(at), even = int4_even(words), odd = int4_odd(words);
    return (int4_weights){vreinterpretq_s8_s32(even), vreinterpretq_s8_s32(odd),
                          vreinterpretq_s8_s32(vzip1q_s32(even, odd)),
                          vreinterpretq_s8_s32(vzip2q_s32(even, odd))};
}
/* Two vectors of sums, of one digit each, become those of both digits with two columns each. */
INT4_INLINE void int4_weave(int4_ints *sums)
{
    int4_ints high = sums[0], low = sums[1];
    sums[0] = vzip1q_s32(high, low);
    sums[1] = vzip2q_s32(high, low);
}
INT4_INLINE void int4_unweave(int4_ints *sums)
{
    int4_ints first = sums[0], second = sums[1];
    sums[0] = vuzp1q_s32(first, second);
    sums[1] = vuzp2q_s32(first, second);
}
INT4_INLINE void int4_dots(int4_ints *sums, int4_weights w, const unsigned char *x,
                           const int digits)
{
    int8x16_t two;
    memcpy(&two, x, sizeof two);
    sums[0] = vmmlaq_s32(sums[0], w.low, two);
    sums[1] = vmmlaq_s32(sums[1], w.high, two);
    if (digits > 2) {
        int8x8_t third;
        memcpy(&third, x + sizeof two, sizeof third);
        sums[2] = vdotq_lane_s32(sums[2], w.even, third, 0);
        sums[2] = vdotq_lane_s32(sums[2], w.odd, third, 1);
    }
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 8, 3) INT4(2, 4, 3) INT4(3, 2, 3)
INT4(1, 1, 3) INT4(2, 1, 3) INT4(3, 1, 3) INT4(4, 1, 3) INT4(5, 1, 3) INT4(6, 1, 3) INT4(7, 1, 3) INT4(8, 1, 3)
INT4(1, 8, 2) INT4(2, 4, 2) INT4(3, 4, 2) INT4(4, 2, 2) INT4(5, 2, 2)
INT4(1, 1, 2) INT4(2, 1, 2) INT4(3, 1, 2) INT4(4, 1, 2) INT4(5, 1, 2) INT4(6, 1, 2)
INT4(7, 1, 2) INT4(8, 1, 2) INT4(9, 1, 2) INT4(10, 1, 2) INT4(11, 1, 2) INT4(12, 1, 2)

static const struct int4_tiles three[] = {
    {8, int4_1_8_3, int4_1_1_3}, {4, int4_2_4_3, int4_2_1_3}, {2, int4_3_2_3, int4_3_1_3}, {1, NULL, int4_4_1_3},
    {1, NULL, int4_5_1_3}, {1, NULL, int4_6_1_3}, {1, NULL, int4_7_1_3}, {1, NULL, int4_8_1_3}};
static const struct int4_tiles two[] = {
    {8, int4_1_8_2, int4_1_1_2}, {4, int4_2_4_2, int4_2_1_2}, {4, int4_3_4_2, int4_3_1_2}, {2, int4_4_2_2, int4_4_1_2},
    {2, int4_5_2_2, int4_5_1_2}, {1, NULL, int4_6_1_2}, {1, NULL, int4_7_1_2}, {1, NULL, int4_8_1_2},
    {1, NULL, int4_9_1_2}, {1, NULL, int4_10_1_2}, {1, NULL, int4_11_1_2}, {1, NULL, int4_12_1_2}};
/* clang-format on */
static const struct int4_shapes shapes[] = {{3, 8, three}, {2, 12, two}};

void tec_gemm_int4_mm_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &shapes[a->digits == 2]);
}

#endif
