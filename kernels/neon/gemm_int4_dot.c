/* gemm_int4_dot.c - the NEON gemm_int4 kernel for processors with dot products of bytes (`asimddp`,
 * Cortex-A76 and newer): its instructions and tile shapes for the shared body.
 *
 * kernels/panels/gemm_int4.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so both kernels give the same bits. The build compiles this file alone for such processors. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"

#define INT4_TARGET VEC_TARGET
#define INT4_INLINE VEC_INLINE

enum { INT4_MOST = 24 };

#include "kernels/neon/digits.h"
#include "kernels/neon/nibbles.h"

/* Four products of a nibble and a digit at a time, with the digits of even k, then of odd k. */
INT4_INLINE int4_ints int4_dot(int4_ints sum, int4_ints even, int4_ints odd, const unsigned char *x)
{
    int8x8_t digits;
    memcpy(&digits, x, sizeof digits);
    sum = vdotq_lane_s32(sum, vreinterpretq_s8_s32(even), digits, 0);
    return vdotq_lane_s32(sum, vreinterpretq_s8_s32(odd), digits, 1);
}

#include "kernels/panels/gemm_int4.inc"

/* clang-format off */
INT4(1, 8, 3) INT4(2, 4, 3) INT4(3, 2, 3) INT4(4, 2, 3)
INT4(1, 1, 3) INT4(2, 1, 3) INT4(3, 1, 3) INT4(4, 1, 3) INT4(5, 1, 3) INT4(6, 1, 3) INT4(7, 1, 3) INT4(8, 1, 3)
INT4(1, 8, 2) INT4(2, 4, 2) INT4(3, 4, 2) INT4(4, 2, 2)
INT4(1, 1, 2) INT4(2, 1, 2) INT4(3, 1, 2) INT4(4, 1, 2) INT4(5, 1, 2) INT4(6, 1, 2) INT4(7, 1, 2) INT4(8, 1, 2)

static const struct int4_tiles three[] = {
    {8, int4_1_8_3, int4_1_1_3}, {4, int4_2_4_3, int4_2_1_3}, {2, int4_3_2_3, int4_3_1_3}, {2, int4_4_2_3, int4_4_1_3},
    {1, NULL, int4_5_1_3}, {1, NULL, int4_6_1_3}, {1, NULL, int4_7_1_3}, {1, NULL, int4_8_1_3}};
static const struct int4_tiles two[] = {
    {8, int4_1_8_2, int4_1_1_2}, {4, int4_2_4_2, int4_2_1_2}, {4, int4_3_4_2, int4_3_1_2}, {2, int4_4_2_2, int4_4_1_2},
    {1, NULL, int4_5_1_2}, {1, NULL, int4_6_1_2}, {1, NULL, int4_7_1_2}, {1, NULL, int4_8_1_2}};
/* clang-format on */
static const struct int4_shapes shapes[] = {{3, 8, three}, {2, 8, two}};

void tec_gemm_int4_dot_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int4(a, part, &shapes[a->digits == 2]);
}

#endif
