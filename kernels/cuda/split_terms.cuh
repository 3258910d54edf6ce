/* split_terms.cuh - a float32 as two bf16 terms: its nearest bf16, and that of what remains, which
 * carry about 17 bits together. */
#pragma once

#include "kernels/cuda/lang.cuh"

/* Two neighbours as bf16 side by side. */
static __device__ __forceinline__ unsigned halves(float x, float y)
{
    return (unsigned)__bfloat16_as_ushort(__float2bfloat16(x)) |
           (unsigned)__bfloat16_as_ushort(__float2bfloat16(y)) << 16;
}

/* The same; `rest` gets what remains of each, as bf16 too. */
static __device__ __forceinline__ unsigned split_terms(float2 v, unsigned *rest)
{
    unsigned high = halves(v.x, v.y);
    *rest = halves(v.x - __uint_as_float(high << 16), v.y - __uint_as_float(high & 0xffff0000U));
    return high;
}
