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

enum { INT8_BYTES = 1, INT8_SUMS = 1, INT8_MOST = 24 };

typedef int32x4_t int8_ints;
typedef int8x16_t int8_weights;

#include "kernels/panels/rows_neon.inc"

INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head, const int digits)
{
    (void)head;
    TEC_UNROLL
    for (int d = 0; d < digits; d++)
        sums[d] = vdupq_n_s32(0);
}
INT8_INLINE int8_weights int8_load(const char *at)
{
    int8_weights w;
    memcpy(&w, at, sizeof w);
    return w;
}
/* Four products of a weight and a digit at a time, with the high digits, then the low ones. */
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x, const int digits)
{
    int8x8_t two;
    uint32_t four;
    if (digits == 1) {
        memcpy(&four, x, sizeof four);
        sums[0] = vdotq_lane_s32(sums[0], w, vreinterpret_s8_u32(vdup_n_u32(four)), 0);
        return;
    }
    memcpy(&two, x, sizeof two);
    sums[0] = vdotq_lane_s32(sums[0], w, two, 0);
    sums[1] = vdotq_lane_s32(sums[1], w, two, 1);
}
INT8_INLINE vec int8_total(const int8_ints *sums, const int digits)
{
    if (digits == 1)
        return vcvtq_f32_s32(sums[0]);
    return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(sums[0], 8), sums[1]));
}

#include "kernels/panels/gemm_int8.inc"

/* clang-format off */
INT8(1, 8, 2) INT8(2, 4, 2) INT8(3, 4, 2) INT8(4, 2, 2)
INT8(1, 1, 2) INT8(2, 1, 2) INT8(3, 1, 2) INT8(4, 1, 2) INT8(5, 1, 2) INT8(6, 1, 2) INT8(7, 1, 2) INT8(8, 1, 2)
INT8(1, 8, 1) INT8(2, 8, 1) INT8(3, 8, 1) INT8(4, 4, 1) INT8(5, 4, 1) INT8(6, 4, 1) INT8(7, 2, 1) INT8(8, 2, 1)
INT8(1, 1, 1) INT8(2, 1, 1) INT8(3, 1, 1) INT8(4, 1, 1) INT8(5, 1, 1) INT8(6, 1, 1) INT8(7, 1, 1) INT8(8, 1, 1)

static const struct int8_tiles one[] = {
    {8, int8_1_8_1, int8_1_1_1}, {8, int8_2_8_1, int8_2_1_1}, {8, int8_3_8_1, int8_3_1_1}, {4, int8_4_4_1, int8_4_1_1},
    {4, int8_5_4_1, int8_5_1_1}, {4, int8_6_4_1, int8_6_1_1}, {2, int8_7_2_1, int8_7_1_1}, {2, int8_8_2_1, int8_8_1_1}};
static const struct int8_tiles two[] = {
    {8, int8_1_8_2, int8_1_1_2}, {4, int8_2_4_2, int8_2_1_2}, {4, int8_3_4_2, int8_3_1_2}, {2, int8_4_2_2, int8_4_1_2},
    {1, NULL, int8_5_1_2}, {1, NULL, int8_6_1_2}, {1, NULL, int8_7_1_2}, {1, NULL, int8_8_1_2}};
/* clang-format on */
static const struct int8_shapes shapes[] = {{8, one}, {8, two}};

void tec_gemm_int8_dot_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int8(a, part, shapes);
}

#endif
