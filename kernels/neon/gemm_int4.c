/* gemm_int4.c - the NEON gemm_int4 kernel for processors without dot products of bytes: its
 * instructions and tile shapes for the shared body.
 *
 * kernels/panels/gemm_int4.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this tier gives the same bits as every other CPU tier, whatever its tile shapes. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"

#define INT4_TARGET VEC_TARGET
#define INT4_INLINE VEC_INLINE

enum { INT4_MOST = 12 };

#include "kernels/neon/digits.h"
#include "kernels/neon/nibbles.h"

/* Four digits, again for each column. */
INT4_INLINE int8x16_t int4_four(const unsigned char *x)
{
    int32_t four;
    memcpy(&four, x, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
/* The sums in 16 bits are of four products of at most 15 * 128 each, so they do not overflow. */
INT4_INLINE int4_ints int4_dot(int4_ints sum, int4_ints even, int4_ints odd, const unsigned char *x)
{
    int8x16_t e = vreinterpretq_s8_s32(even), o = vreinterpretq_s8_s32(odd);
    int8x16_t of_e = int4_four(x), of_o = int4_four(x + 4);
    int16x8_t low = vmull_s8(vget_low_s8(e), vget_low_s8(of_e));
    int16x8_t high = vmull_high_s8(e, of_e);
    low = vmlal_s8(low, vget_low_s8(o), vget_low_s8(of_o));
    high = vmlal_high_s8(high, o, of_o);
    return vpadalq_s16(sum, vpaddq_s16(low, high));
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

void tec_gemm_int4_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &shapes[a->digits == 2]);
}

#endif
