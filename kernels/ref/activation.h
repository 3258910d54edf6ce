/* activation.h - activations in float64, so that the reference is their value rounded once. */
#ifndef TEC_KERNELS_REF_ACTIVATION_H
#define TEC_KERNELS_REF_ACTIVATION_H

#include <math.h>

/* 0.5 x (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3), which does not cancel
 * for negative x. */
static inline double tec_gelu(double x)
{
    return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

/* 0.5 x (1 + erf(x / sqrt 2)), which does not cancel either. */
static inline double tec_gelu_erf(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

static inline double tec_silu(double x)
{
    return x / (1 + exp(-x));
}

#endif
