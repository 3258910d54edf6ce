/* activation.cuh - gelu, silu and relu in float32, within the bound of tests/kernels/activation.h.
 */
#pragma once

#include "kernels/cuda/lang.cuh"

/* 0.5 x (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3): no cancellation for
 * negative x. The sum is fused by name, so that every compiler rounds alike. */
static __device__ __forceinline__ float activation_gelu(float x)
{
    const float linear = -2 * 0.7978845608F, cubic = linear * 0.044715F;
    return x / (1.0F + expf(__fmaf_rn(x * x * x, cubic, x * linear)));
}

/* 0.5 x (1 + erf(x / sqrt 2)) = max(x, 0) - |x| Q(|x|): kernels/vector/exp.inc, which has the error
 * of the ratio of Q and e^(-x^2 / 2). */
static __device__ __forceinline__ float activation_gelu_erf(float x)
{
    float size = fabsf(x) > 20.0F ? 20.0F : fabsf(x); /* a NaN stays one */
    float t = 1.0F / __fmaf_rn(0.34375F, size, 1.0F);
    float p = -0x1.c330ccp-6F;
    p = __fmaf_rn(p, t, 0x1.240cdp-3F);
    p = __fmaf_rn(p, t, -0x1.13c058p-2F);
    p = __fmaf_rn(p, t, 0x1.81afa6p-3F);
    p = __fmaf_rn(p, t, -0x1.3454d2p-5F);
    p = __fmaf_rn(p, t, 0x1.cac1f8p-4F);
    p = __fmaf_rn(p, t, 0x1.decca8p-4F);
    p = __fmaf_rn(p, t, 0x1.19a57cp-3F);
    p = __fmaf_rn(p, t, 0x1.18d2bep-3F);
    return (x > 0.0F ? x : 0.0F) - size * (p * t) * expf(-0.5F * (size * size));
}

static __device__ __forceinline__ float activation_silu(float x)
{
    return x / (1.0F + expf(-x));
}

/* A NaN stays one. */
static __device__ __forceinline__ float activation_relu(float x)
{
    return x < 0.0F ? 0.0F : x;
}

/* cap tanh(x / cap). */
static __device__ __forceinline__ float activation_soft_cap(float x, float cap)
{
    return cap * tanhf(x / cap);
}

/* The activation, as a template parameter. */
enum activation { COPY, GELU, GELU_ERF, SILU, RELU };

template <enum activation F> static __device__ __forceinline__ float activation_of(float x)
{
    if (F == GELU)
        return activation_gelu(x);
    if (F == GELU_ERF)
        return activation_gelu_erf(x);
    if (F == SILU)
        return activation_silu(x);
    if (F == RELU)
        return activation_relu(x);
    return x;
}
