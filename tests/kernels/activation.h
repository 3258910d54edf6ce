/* activation.h - activations in float64, and how far a float32 kernel may be from them.
 *
 * Kernels compute x / (1 + e^t) (or the tanh form in float64, which is nearer). t is a sum of
 * products of rounded constants: six roundings of 2^-24 of |t|, which e^t / (1 + e^t) of reaches
 * the result. e^t itself is within 2 units of 2^-23, the sum, the quotient and the store round once
 * each. Where e^t overflows the result is 0, off by at most |x| 2^-127. */
#ifndef TEC_TESTS_KERNELS_ACTIVATION_H
#define TEC_TESTS_KERNELS_ACTIVATION_H

#include <math.h>

struct activation {
    double value, bound;
};

static inline struct activation activation_of(double x, double t)
{
    double value = x / (1 + exp(t)), share = 1 / (1 + exp(-t));
    double relative = ldexp(share * (6 * fabs(t) + 4) + 3, -24);
    return (struct activation){value,
                               relative * fabs(value) + ldexp(fabs(x), -127) + ldexp(1, -149)};
}

static inline struct activation activation_gelu(double x)
{
    return activation_of(x, -2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x));
}

static inline struct activation activation_silu(double x)
{
    return activation_of(x, -x);
}

/* The bound after rounding to bf16: half a unit of 2^-7, or of the smallest bf16. */
static inline double activation_rounded(struct activation y)
{
    return y.bound + ldexp(fabs(y.value) + y.bound, -8) + ldexp(1, -134);
}

#endif
