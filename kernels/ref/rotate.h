/* rotate.h - rotation of one element by position, for fresh keys and for those that were kept. */
#ifndef TEC_KERNELS_REF_ROTATE_H
#define TEC_KERNELS_REF_ROTATE_H

#include "kernels/bf16.h"

#include <stddef.h>

/* The values to round to bf16: before the rotation, and after it. */
struct tec_rounding {
    int before, after;
};

static inline float tec_rounded(float x, int round)
{
    return round ? tec_bf16_round(x) : x;
}

/* Element d of a head of `dim`: x, and `other` the second one of its pair. `angle` has the cosine
 * and sine of each pair; NULL leaves x where it is. */
static inline float tec_rotated(float x, float other, const float *angle, int d, int dim,
                                struct tec_rounding round)
{
    int half = dim / 2, i = d < half ? d : d - half;
    x = tec_rounded(x, round.before);
    if (!angle)
        return tec_rounded(x, round.after);
    float c = angle[(size_t)i * 2], s = angle[(size_t)i * 2 + 1];
    other = tec_rounded(other, round.before);
    return tec_rounded(d < half ? x * c - other * s : x * c + other * s, round.after);
}

#endif
