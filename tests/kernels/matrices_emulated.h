/* matrices_emulated.h - two products of bf16 that are added to a sum as `bfmmla` and `bfdot` do, in
 * plain C, exact to the bit as the manual describes them where FPCR.EBF is 0: each product, the sum
 * of both and the new sum are rounded to odd (what is inexact is cut off, and its last bit is 1),
 * and what is below the normal range is a zero of its sign, read or made. */
#ifndef TEC_TESTS_KERNELS_MATRICES_EMULATED_H
#define TEC_TESTS_KERNELS_MATRICES_EMULATED_H

#include "kernels/bf16.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float matrices_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0F, x) : x;
}

/* A float32 of what is no nearer to zero than x, and further where x is not `exact`. */
static inline float matrices_odd(double x, bool exact)
{
    uint64_t bits, below = ((uint64_t)1 << 29) - 1; /* of a float64, beyond those of a float32 */
    uint32_t odd;
    if (isnan(x))
        return NAN;
    if (fabs(x) >= 0x1p128)
        return copysignf(INFINITY, (float)x);
    if (fabs(x) < (double)FLT_MIN)
        return copysignf(0.0F, (float)x);
    memcpy(&bits, &x, sizeof bits);
    exact = exact && !(bits & below);
    bits &= ~below;
    memcpy(&x, &bits, sizeof x);
    float cut = (float)x;
    memcpy(&odd, &cut, sizeof odd);
    odd |= !exact;
    memcpy(&cut, &odd, sizeof cut);
    return cut;
}

static inline float matrices_product(uint16_t x, uint16_t y)
{
    return matrices_odd((double)matrices_flush(tec_bf16_float(x)) *
                            (double)matrices_flush(tec_bf16_float(y)),
                        true);
}

static inline float matrices_sum(float one, float other)
{
    double x = (double)matrices_flush(one), y = (double)matrices_flush(other), sum = x + y;
    if (!isfinite(sum))
        return matrices_odd(sum, true);
    double of_y = sum - x, left = (x - (sum - of_y)) + (y - of_y); /* what the sum is short of */
    if (left != 0 && (left < 0) != (sum < 0))
        sum = nextafter(sum, 0);
    return matrices_odd(sum, left == 0);
}

/* sum + (x[0] w[0] + x[1] w[1]). */
static inline float matrices_step(float sum, const uint16_t x[2], const uint16_t w[2])
{
    return matrices_sum(sum,
                        matrices_sum(matrices_product(x[0], w[0]), matrices_product(x[1], w[1])));
}

#endif
