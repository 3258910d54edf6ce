/* nibbles.h - words of 4-bit weights and their heads in NEON, for both gemm_int4 kernels. */
#ifndef TEC_KERNELS_NEON_NIBBLES_H
#define TEC_KERNELS_NEON_NIBBLES_H

#include "kernels/neon/panels.h"

typedef int32x4_t int4_ints;

VEC_INLINE int4_ints int4_zeros(const char *at)
{
    uint32_t four;
    memcpy(&four, at, sizeof four);
    uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
}
VEC_INLINE vec int4_scales(const char *at)
{
    float16x4_t half;
    memcpy(&half, at, sizeof half);
    return vcvt_f32_f16(half);
}
VEC_INLINE int4_ints int4_times(int4_ints x, int y)
{
    return vmulq_n_s32(x, y);
}
VEC_INLINE vec int4_floats(int4_ints x)
{
    return vcvtq_f32_s32(x);
}
VEC_INLINE int4_ints int4_words(const char *at)
{
    int4_ints words;
    memcpy(&words, at, sizeof words);
    return words;
}
VEC_INLINE int4_ints int4_even(int4_ints words)
{
    return vreinterpretq_s32_u8(vandq_u8(vreinterpretq_u8_s32(words), vdupq_n_u8(15)));
}
VEC_INLINE int4_ints int4_odd(int4_ints words)
{
    return vreinterpretq_s32_u8(vshrq_n_u8(vreinterpretq_u8_s32(words), 4));
}

#endif
