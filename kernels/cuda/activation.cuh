/* activation.cuh - gelu and silu in float32, within the bound of tests/kernels/activation.h. */
#pragma once

#include "kernels/cuda/lang.cuh"

/* 0.5 x (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3): no cancellation for
 * negative x. The sum is fused by name, so that every compiler rounds alike. */
static __device__ __forceinline__ float activation_gelu(float x)
{
    const float linear = -2 * 0.7978845608F, cubic = linear * 0.044715F;
    return x / (1.0F + expf(__fmaf_rn(x * x * x, cubic, x * linear)));
}

static __device__ __forceinline__ float activation_silu(float x)
{
    return x / (1.0F + expf(-x));
}
