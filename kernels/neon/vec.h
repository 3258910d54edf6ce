/* vec.h - four floats at a time: the vector that kernels/vector/ is written over.
 *
 * Every vec.h defines the same names: VEC_WIDTH floats in a `vec`, a `block` of VEC_BLOCK vectors
 * (as many as the registers hold six of beside their operands), a `wide` of as many doubles. */
#ifndef TEC_KERNELS_NEON_VEC_H
#define TEC_KERNELS_NEON_VEC_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define VEC_TARGET /* every 64-bit ARM has NEON with fused products */
#define VEC_INLINE static inline __attribute__((always_inline, unused)) VEC_TARGET
#define VEC_NAME(kernel) tec_##kernel##_neon

enum { VEC_WIDTH = 4, VEC_BLOCK = 4 };
typedef float32x4_t vec;
struct wide {
    float64x2_t lo, hi;
};

VEC_INLINE vec vec_set(float x)
{
    return vdupq_n_f32(x);
}
/* memcpy becomes one load with its offset, where the intrinsic (before gcc 12) computes an address
 * first. */
VEC_INLINE vec vec_load(const float *p)
{
    vec x;
    memcpy(&x, p, sizeof x);
    return x;
}
VEC_INLINE void vec_store(float *p, vec x)
{
    memcpy(p, &x, sizeof x);
}
/* The first n, the others 0. */
VEC_INLINE vec vec_load_some(const float *p, int n)
{
    if (n >= 4)
        return vec_load(p);
    float some[4] = {0};
    memcpy(some, p, (size_t)n * sizeof *p);
    return vec_load(some);
}
VEC_INLINE void vec_store_some(float *p, vec x, int n)
{
    if (n >= 4) {
        vec_store(p, x);
    } else {
        float some[4];
        vec_store(some, x);
        memcpy(p, some, (size_t)n * sizeof *p);
    }
}
VEC_INLINE vec vec_load_bf16(const uint16_t *p, int n)
{
    uint16_t some[4] = {0};
    uint16x4_t half;
    if (n >= 4) {
        memcpy(&half, p, sizeof half);
    } else {
        memcpy(some, p, (size_t)n * sizeof *p);
        memcpy(&half, some, sizeof half);
    }
    return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}
/* The first n of 2 VEC_WIDTH bf16, two to a lane, zeros beyond: vec_transpose moves pairs, then
 * vec_even and vec_odd take them apart. */
VEC_INLINE vec vec_load_two(const uint16_t *p, int n)
{
    uint16_t some[8] = {0};
    vec x;
    if (n >= 8) {
        memcpy(&x, p, sizeof x);
    } else {
        memcpy(some, p, (size_t)n * sizeof *p);
        memcpy(&x, some, sizeof x);
    }
    return x;
}
VEC_INLINE vec vec_even(vec x)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(x), 16));
}
VEC_INLINE vec vec_odd(vec x)
{
    uint32x4_t high = vdupq_n_u32(0xffff0000U);
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), high));
}
VEC_INLINE vec vec_add(vec x, vec y)
{
    return vaddq_f32(x, y);
}
VEC_INLINE vec vec_sub(vec x, vec y)
{
    return vsubq_f32(x, y);
}
VEC_INLINE vec vec_mul(vec x, vec y)
{
    return vmulq_f32(x, y);
}
VEC_INLINE vec vec_div(vec x, vec y)
{
    return vdivq_f32(x, y);
}
VEC_INLINE vec vec_fma(vec x, vec y, vec z)
{
    return vfmaq_f32(z, x, y);
}
/* y where either is a NaN; the processor's own maximum would be a NaN. */
VEC_INLINE vec vec_max(vec x, vec y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}
VEC_INLINE vec vec_min(vec x, vec y)
{
    return vbslq_f32(vcltq_f32(x, y), x, y);
}
VEC_INLINE float vec_first(vec x)
{
    return vgetq_lane_f32(x, 0);
}
VEC_INLINE float vec_largest(vec x)
{
    return vmaxvq_f32(x);
}
VEC_INLINE float vec_total(vec x)
{
    return vaddvq_f32(x);
}
/* x in the first n lanes, y in the others. */
VEC_INLINE vec vec_pick(int n, vec x, vec y)
{
    static const int32_t places[4] = {0, 1, 2, 3};
    return vbslq_f32(vcgtq_s32(vdupq_n_s32(n), vld1q_s32(places)), x, y);
}
/* The nearest whole number, ties to even. */
VEC_INLINE vec vec_whole(vec x)
{
    return vrndnq_f32(x);
}
/* x * 2^n for a whole n in -250 .. 250, in two steps since 2^n alone may not be a float. */
VEC_INLINE vec vec_scale(vec x, vec n)
{
    int32x4_t whole = vcvtq_s32_f32(n), bias = vdupq_n_s32(127);
    int32x4_t one = vshrq_n_s32(whole, 1), two = vsubq_s32(whole, one);
    one = vshlq_n_s32(vaddq_s32(one, bias), 23);
    two = vshlq_n_s32(vaddq_s32(two, bias), 23);
    return vmulq_f32(vmulq_f32(x, vreinterpretq_f32_s32(one)), vreinterpretq_f32_s32(two));
}
/* The nearest bf16 in the upper half of each lane; the lower half holds anything. */
VEC_INLINE uint32x4_t vec_near(vec x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t near = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vbslq_u32(vceqq_f32(x, x), near, quiet);
}
VEC_INLINE vec vec_round(vec x)
{
    return vreinterpretq_f32_u32(vandq_u32(vec_near(x), vdupq_n_u32(0xffff0000U)));
}
VEC_INLINE void vec_store_bf16(uint16_t *p, vec x)
{
    uint16x4_t half = vshrn_n_u32(vec_near(x), 16);
    memcpy(p, &half, sizeof half);
}
/* Four pairs (cos, sin) apart. */
VEC_INLINE void vec_load_pairs(const float *p, vec *cos, vec *sin)
{
    vec x = vec_load(p), y = vec_load(p + 4);
    *cos = vuzp1q_f32(x, y);
    *sin = vuzp2q_f32(x, y);
}

/* Element i of vector j becomes element j of vector i. */
VEC_INLINE void vec_transpose(vec x[VEC_WIDTH])
{
    float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(x[0], x[1]));
    float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(x[0], x[1]));
    float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(x[2], x[3]));
    float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(x[2], x[3]));
    x[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    x[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    x[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    x[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

#include "kernels/vector/block_of_four.inc"

VEC_INLINE struct wide wide_set(double x)
{
    return (struct wide){vdupq_n_f64(x), vdupq_n_f64(x)};
}
VEC_INLINE struct wide wide_of(vec x)
{
    return (struct wide){vcvt_f64_f32(vget_low_f32(x)), vcvt_high_f64_f32(x)};
}
VEC_INLINE vec wide_narrow(struct wide x)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(x.lo), x.hi);
}
VEC_INLINE struct wide wide_add(struct wide x, struct wide y)
{
    return (struct wide){vaddq_f64(x.lo, y.lo), vaddq_f64(x.hi, y.hi)};
}
VEC_INLINE struct wide wide_sub(struct wide x, struct wide y)
{
    return (struct wide){vsubq_f64(x.lo, y.lo), vsubq_f64(x.hi, y.hi)};
}
VEC_INLINE struct wide wide_mul(struct wide x, struct wide y)
{
    return (struct wide){vmulq_f64(x.lo, y.lo), vmulq_f64(x.hi, y.hi)};
}
VEC_INLINE double wide_total(struct wide x)
{
    return vaddvq_f64(vaddq_f64(x.lo, x.hi));
}

#endif
