/* split_terms.cuh - a float32 as two bf16 terms: its nearest bf16, and that of what remains, which
 * carry about 17 bits together. */
#pragma once

#include "kernels/cuda/lang.cuh"

/* Two neighbours as bf16 side by side: one instruction, where two conversions are two of the slow
 * pipe and a third one to join them. */
static __device__ __forceinline__ unsigned halves(float x, float y)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    unsigned both;
    memcpy(&both, &pair, sizeof both);
    return both;
}

/* The same; `rest` gets what remains of each, as bf16 too. */
static __device__ __forceinline__ unsigned split_terms(float2 v, unsigned *rest)
{
    unsigned high = halves(v.x, v.y);
    *rest = halves(v.x - __uint_as_float(high << 16), v.y - __uint_as_float(high & 0xffff0000U));
    return high;
}
