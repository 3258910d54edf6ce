/* bf16.h - bf16 is the upper half of a float32: conversions and rounding to nearest even, in one
 * term and in two. */
#ifndef TEC_KERNELS_BF16_H
#define TEC_KERNELS_BF16_H

#include <stdint.h>
#include <string.h>

/* The nearest bf16, ties to even; beyond the largest one infinity; a NaN stays a quiet NaN. */
static inline uint16_t tec_bf16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)((bits >> 16) | 0x40U);
    return (uint16_t)((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

static inline float tec_bf16_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* x as the nearest bf16 holds it. */
static inline float tec_bf16_round(float x)
{
    return tec_bf16_float(tec_bf16_bits(x));
}

/* x as the sum of two bf16 holds it: of the nearest, and of the one nearest to what that leaves
 * out. The sum is exact, and within 2^-17 of x, relative to it, or 2^-134, where the nearest bf16
 * is finite: below 2^128 - 2^119. */
static inline float tec_bf16_two(float x)
{
    float near = tec_bf16_round(x);
    return near + tec_bf16_round(x - near);
}

#endif
