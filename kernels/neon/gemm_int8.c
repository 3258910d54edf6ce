/* gemm_int8.c - the NEON gemm_int8 kernel for processors without dot products of bytes: its
 * instructions and tile shapes for the shared body.
 *
 * kernels/panels/gemm_int8.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this tier gives the same bits as every other CPU tier, whatever its tile shapes. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/panels.h"

#define INT8_TARGET VEC_TARGET
#define INT8_INLINE VEC_INLINE

/* Numbers of x have 16 bits, in one digit too; each of four columns has its sums in a vector of its
 * own. */
enum { INT8_BYTES = 0, INT8_SUMS = 4, INT8_MOST = 16 };

typedef int32x4_t int8_ints;
typedef struct {
    int16x8_t low, high; /* four k of columns 0 and 1, of columns 2 and 3 */
} int8_weights;

#include "kernels/panels/rows_neon.inc"

INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head, const int digits)
{
    (void)head;
    (void)digits;
    for (int i = 0; i < INT8_SUMS; i++)
        sums[i] = vdupq_n_s32(0);
}
INT8_INLINE int8_weights int8_load(const char *at)
{
    int8x16_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    return (int8_weights){vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)};
}
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x, const int digits)
{
    int16x4_t four;
    (void)digits;
    memcpy(&four, x, sizeof four);
    sums[0] = vmlal_s16(sums[0], vget_low_s16(w.low), four);
    sums[1] = vmlal_s16(sums[1], vget_high_s16(w.low), four);
    sums[2] = vmlal_s16(sums[2], vget_low_s16(w.high), four);
    sums[3] = vmlal_s16(sums[3], vget_high_s16(w.high), four);
}
INT8_INLINE vec int8_total(const int8_ints *sums, const int digits)
{
    (void)digits;
    return vcvtq_f32_s32(vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3])));
}

#include "kernels/panels/gemm_int8.inc"

/* clang-format off */
INT8(1, 4, 2) INT8(2, 2, 2)
INT8(1, 1, 2) INT8(2, 1, 2) INT8(3, 1, 2) INT8(4, 1, 2)

static const struct int8_tiles tiles[] = {
    {4, int8_1_4_2, int8_1_1_2}, {2, int8_2_2_2, int8_2_1_2}, {1, NULL, int8_3_1_2}, {1, NULL, int8_4_1_2}};
/* clang-format on */
static const struct int8_shapes shapes[] = {{4, tiles}, {4, tiles}};

void tec_gemm_int8_neon(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int8(a, part, shapes);
}

#endif
