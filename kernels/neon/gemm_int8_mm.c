/* gemm_int8_mm.c - the NEON gemm_int8 kernel for processors with products of matrices of bytes
 * (`i8mm`, Cortex-X2 and Neoverse V1 and newer): its instructions and tile shapes for the shared
 * body.
 *
 * kernels/panels/gemm_int8.inc has the algorithm. A `smmla` multiplies 2 x 8 bytes by 8 x 2. The
 * two rows are the two digits of one row of x, so that one row takes no longer than its share of
 * two; the two columns have their 8 k in two lines of a panel, which meet when they are loaded,
 * once for all rows of a tile. One digit goes the way of gemm_int8_dot.c: a row is half of a
 * matrix. Sums over a group are whole numbers, hence exact, so the bits are those of every kernel.
 * The build compiles this file alone for such processors. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"

#define INT8_TARGET VEC_TARGET
#define INT8_INLINE VEC_INLINE
#define INT8_LINES 2

enum { INT8_BYTES = 1, INT8_SUMS = 1, INT8_MOST = 24 };

typedef int32x4_t int8_ints;
typedef struct {
    int8x16_t low, high; /* 8 k of two columns each */
} int8_weights;

#include "kernels/panels/rows_neon.inc"

/* A vector has the sums of the high and of the low digits with one column, then with the next. */
INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head, const int digits)
{
    (void)head;
    (void)digits;
    sums[0] = sums[1] = vdupq_n_s32(0);
}
INT8_INLINE int8_weights int8_load(const char *at)
{
    int32x4_t first, second;
    memcpy(&first, at, sizeof first);
    memcpy(&second, at + TEC_INT8_LINE, sizeof second);
    return (int8_weights){vreinterpretq_s8_s32(vzip1q_s32(first, second)),
                          vreinterpretq_s8_s32(vzip2q_s32(first, second))};
}
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x, const int digits)
{
    (void)digits;
    int8x16_t both;
    memcpy(&both, x, sizeof both);
    sums[0] = vmmlaq_s32(sums[0], w.low, both);
    sums[1] = vmmlaq_s32(sums[1], w.high, both);
}
INT8_INLINE vec int8_total(const int8_ints *sums, const int digits)
{
    (void)digits;
    int32x4_t high = vuzp1q_s32(sums[0], sums[1]), low = vuzp2q_s32(sums[0], sums[1]);
    return vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(high, 8), low));
}

#include "kernels/panels/gemm_int8.inc"

/* Two columns' weights are made ready once for a tile: many rows, of few columns. */
/* clang-format off */
INT8(1, 8, 2) INT8(2, 4, 2) INT8(3, 4, 2) INT8(4, 2, 2) INT8(5, 2, 2)
INT8(1, 1, 2) INT8(2, 1, 2) INT8(3, 1, 2) INT8(4, 1, 2) INT8(5, 1, 2) INT8(6, 1, 2)
INT8(7, 1, 2) INT8(8, 1, 2) INT8(9, 1, 2) INT8(10, 1, 2) INT8(11, 1, 2) INT8(12, 1, 2)

static const struct int8_tiles tiles[] = {
    {8, int8_1_8_2, int8_1_1_2}, {4, int8_2_4_2, int8_2_1_2}, {4, int8_3_4_2, int8_3_1_2},
    {2, int8_4_2_2, int8_4_1_2}, {2, int8_5_2_2, int8_5_1_2}, {1, NULL, int8_6_1_2},
    {1, NULL, int8_7_1_2}, {1, NULL, int8_8_1_2}, {1, NULL, int8_9_1_2},
    {1, NULL, int8_10_1_2}, {1, NULL, int8_11_1_2}, {1, NULL, int8_12_1_2}};
/* clang-format on */
static const struct int8_shapes shapes[] = {{0, NULL}, {12, tiles}};

void tec_gemm_int8_mm_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    if (a->digits == 1)
        tec_gemm_int8_dot_neon(a, part);
    else
        run_int8(a, part, shapes);
}

#endif
