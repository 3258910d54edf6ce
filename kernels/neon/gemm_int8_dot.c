/* gemm_int8_dot.c - the NEON gemm_int8 kernel for processors with dot products of bytes (`asimddp`,
 * Cortex-A76 and newer): its instructions and tile shapes for the shared body.
 *
 * kernels/panels/gemm_int8.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so both kernels give the same bits. The build compiles this file alone for such processors. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"

#define INT8_TARGET VEC_TARGET
#define INT8_INLINE VEC_INLINE

enum { INT8_BYTES = 1, INT8_SUMS = 2, INT8_MOST = 24, INT8_ROWS = 8 };

typedef int32x4_t int8_ints;
typedef int8x16_t int8_weights;

#include "kernels/panels/rows_neon.inc"

INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head)
{
    (void)head;
    sums[0] = sums[1] = vdupq_n_s32(0);
}
INT8_INLINE int8_weights int8_load(const char *at)
{
    int8_weights w;
    memcpy(&w, at, sizeof w);
    return w;
}
/* Four products of a weight and a digit at a time, with the high digits, then the low ones. */
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x)
{
    int8x8_t digits;
    memcpy(&digits, x, sizeof digits);
    sums[0] = vdotq_lane_s32(sums[0], w, digits, 0);
    sums[1] = vdotq_lane_s32(sums[1], w, digits, 1);
}
INT8_INLINE vec int8_total(const int8_ints *sums)
{
    return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(sums[0], 8), sums[1]));
}

#include "kernels/panels/gemm_int8.inc"

/* clang-format off */
INT8(1, 8) INT8(2, 4) INT8(3, 4) INT8(4, 2)
INT8(1, 1) INT8(2, 1) INT8(3, 1) INT8(4, 1) INT8(5, 1) INT8(6, 1) INT8(7, 1) INT8(8, 1)

static const struct int8_tiles tiles[INT8_ROWS] = {
    {8, int8_1_8, int8_1_1}, {4, int8_2_4, int8_2_1}, {4, int8_3_4, int8_3_1}, {2, int8_4_2, int8_4_1},
    {1, NULL, int8_5_1}, {1, NULL, int8_6_1}, {1, NULL, int8_7_1}, {1, NULL, int8_8_1}};
/* clang-format on */

void tec_gemm_int8_dot_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int8(a, part, tiles);
}

#endif
