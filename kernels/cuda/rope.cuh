/* rope.cuh - rotation of a pair of elements by position. */
#pragma once

#include "kernels/cuda/lang.cuh"

static __device__ __forceinline__ void put(float *to, float v)
{
    *to = v;
}

static __device__ __forceinline__ void put(bf16 *to, float v)
{
    *to = __float2bfloat16(v);
}

/* Elements i and i + half of a rotated head. Products round before the sum, as in every tier. */
template <class T>
static __device__ __forceinline__ void rotate(float lo, float hi, T *to, int half, float2 angle,
                                              bool before, bool after)
{
    lo = before ? round_bf16(lo) : lo;
    hi = before ? round_bf16(hi) : hi;
    float a = __fsub_rn(__fmul_rn(lo, angle.x), __fmul_rn(hi, angle.y));
    float b = __fadd_rn(__fmul_rn(hi, angle.x), __fmul_rn(lo, angle.y));
    put(to, after ? round_bf16(a) : a);
    put(to + half, after ? round_bf16(b) : b);
}
