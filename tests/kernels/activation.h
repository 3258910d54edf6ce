/* activation.h - activations in float64, and how far a float32 kernel may be from them.
 *
 * Kernels compute x / (1 + e^t) in float32, or in float64, which is nearer. t itself may carry some
 * roundings of 2^-24 |t|: e^t / (1 + e^t) of them reach the result. e^t is within 1.1 units of
 * 2^-23; the sum and the quotient round once each. Where e^t overflows the result is 0, off by at
 * most |x| 2^-127. */
#ifndef TEC_TESTS_KERNELS_ACTIVATION_H
#define TEC_TESTS_KERNELS_ACTIVATION_H

#include <math.h>

struct activation {
    double value, bound;
};

static inline struct activation activation_of(double x, double t, int roundings)
{
    double value = x / (1 + exp(t)), share = 1 / (1 + exp(-t));
    double relative = ldexp(share * (roundings * fabs(t) + 2.2) + 2.1, -24);
    return (struct activation){value,
                               relative * fabs(value) + ldexp(fabs(x), -127) + ldexp(1, -149)};
}

/* Two constants (three roundings in their product), x^3 (two) and a fused sum. */
static inline struct activation activation_gelu(double x)
{
    return activation_of(x, -2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x), 6);
}

static inline struct activation activation_silu(double x)
{
    return activation_of(x, -x, 0);
}

/* x Q(x) with Q(a) = erfc(-a / sqrt 2) / 2, for positive x as x - x Q(-x), where the second term is
 * at most half of the first. Q is e^-t, t = x^2 / 2 rounded once, times a ratio within 6 units of
 * 2^-24 (kernels/vector/exp.inc); |x| and e^-t are multiplied in, and a difference rounds once. */
static inline struct activation activation_gelu_erf(double x)
{
    double tail = fabs(x) * 0.5 * erfc(fabs(x) * 0.70710678118654752440), t = x * x / 2;
    double value = x > 0 ? x - tail : -tail;
    double bound = ldexp(tail * (t + 2.2 + 6 + 2) + (x > 0 ? value : 0), -24);
    return (struct activation){value, bound + ldexp(1, -148)};
}

/* The bound after rounding to bf16: half a unit of 2^-7, or of the smallest bf16. */
static inline double activation_rounded(struct activation y)
{
    return y.bound + ldexp(fabs(y.value) + y.bound, -8) + ldexp(1, -134);
}

#endif
