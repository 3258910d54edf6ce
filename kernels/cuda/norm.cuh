/* norm.cuh - the arithmetic of norms, one for the kernel that is a norm and for products that
 * begin with one.
 *
 * The order of a row's sum follows from its columns alone. It is that of a block of norm_threads():
 * thread t adds up the quads t, t + threads, ...; then lane by lane the warps' threads in their
 * order; then the tree of the 32 lanes. Operations are named, so no compiler joins them in one
 * kernel and not in the other. */
#pragma once

#include "kernels/cuda/row.cuh"

enum { NORM_WARPS = NORM_THREADS / WARP };

static __device__ __forceinline__ float add_square(float sum, float v)
{
    return __fmaf_rn(v, v, sum);
}

/* The scale of a row, from its mean square. */
static __device__ __forceinline__ float norm_scale(float square, float eps)
{
    return 1.0F / sqrtf(__fadd_rn(square, eps));
}

/* v without the mean; `weight` with the offset. */
static __device__ __forceinline__ float normed(float v, float scale, float weight, float bias,
                                               int round)
{
    v = __fmaf_rn(__fmul_rn(v, scale), weight, bias);
    return round ? round_bf16(v) : v;
}
