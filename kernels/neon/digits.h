/* digits.h - the digits of a group of x for gemm_int4, in NEON. */
#ifndef TEC_KERNELS_NEON_DIGITS_H
#define TEC_KERNELS_NEON_DIGITS_H

#include "kernels/neon/panels.h"
#include "kernels/panels/gemm_int4_digits.inc"

/* Four x from k on. */
VEC_INLINE vec int4_quarter(const float *x, const int *order, int k)
{
    if (!order)
        return vec_load(x + k);
    const float four[] = {x[order[k]], x[order[k + 1]], x[order[k + 2]], x[order[k + 3]]};
    return vec_load(four);
}

/* Bits of the largest |x|. */
VEC_INLINE uint32_t int4_largest(const float *x, const int *order, int first, int last)
{
    uint32x4_t most = vdupq_n_u32(0), magnitude = vdupq_n_u32(0x7fffffff);
    for (int k = first; k < last; k += VEC_WIDTH)
        most =
            vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(int4_quarter(x, order, k)), magnitude));
    return vmaxvq_u32(most);
}

/* Whole numbers of a unit, raised so that their low bytes are the digits and 128. */
VEC_INLINE uint8x16_t int4_raised(const float *x, const int *order, int k, vec per, int32x4_t lift)
{
    int32x4_t whole = vcvtnq_s32_f32(vec_mul(int4_quarter(x, order, k), per));
    return vreinterpretq_u8_s32(vaddq_s32(whole, lift));
}

/* The sums of bytes 0-7 and of bytes 8-15, in two lanes each. */
VEC_INLINE int32x4_t int4_add_bytes(int32x4_t sums, int8x16_t bytes)
{
    return vpadalq_s16(sums, vpaddlq_s8(bytes));
}

VEC_TARGET static unsigned char *int4_group_digits(const float *x, const int *order, int first,
                                                   int last, int digits, unsigned char *to)
{
    static const uint8_t places[3][16] = {
        {2, 10, 18, 26, 6, 14, 22, 30, 1, 9, 17, 25, 5, 13, 21, 29}, /* of three: high, middle, */
        {0, 8, 16, 24, 4, 12, 20, 28, 255, 255, 255, 255, 255, 255, 255, 255}, /* low */
        {1, 9, 17, 25, 5, 13, 21, 29, 0, 8, 16, 24, 4, 12, 20, 28}};           /* of two */
    const uint8x16_t upper = vld1q_u8(places[digits > 2 ? 0 : 2]), lower = vld1q_u8(places[1]);
    const int32x4_t lift = vdupq_n_s32(digits > 2 ? 0x808080 : 0x8080);
    struct int4_head head;
    float per;
    head.unit = int4_unit(int4_largest(x, order, first, last), digits, &per);
    unsigned char *at = to + sizeof head;
    int32x4_t two_sums = vdupq_n_s32(0), third_sum = two_sums;
    for (int k = first; k < last; k += TEC_INT4_DEEP, at += (ptrdiff_t)digits * TEC_INT4_DEEP) {
        uint8x16x2_t all = {{int4_raised(x, order, k, vec_set(per), lift),
                             int4_raised(x, order, k + 4, vec_set(per), lift)}};
        uint8x16_t two = veorq_u8(vqtbl2q_u8(all, upper), vdupq_n_u8(0x80));
        memcpy(at, &two, sizeof two);
        two_sums = int4_add_bytes(two_sums, vreinterpretq_s8_u8(two));
        if (digits > 2) {
            uint8x16_t third = veorq_u8(vqtbl2q_u8(all, lower), vdupq_n_u8(0x80));
            memcpy(at + 16, &third, 8);
            third_sum = int4_add_bytes(third_sum, vreinterpretq_s8_u8(third));
        }
    }
    head.sums[0] = vgetq_lane_s32(two_sums, 0) + vgetq_lane_s32(two_sums, 1);
    head.sums[1] = vgetq_lane_s32(two_sums, 2) + vgetq_lane_s32(two_sums, 3);
    head.sums[2] = vgetq_lane_s32(third_sum, 0) + vgetq_lane_s32(third_sum, 1);
    memcpy(to, &head, sizeof head);
    return at;
}

#endif
