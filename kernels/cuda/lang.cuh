/* lang.cuh - the device language as kernels here use it.
 *
 * Every .cu file compiles two ways: with nvcc, and as C++ under the emulator of
 * tests/cuda_emulator, which runs each thread of a block on a fiber. So kernels keep to a few
 * rules: they are started with tec_cuda_start, shared memory sized at launch is named with
 * TEC_SHARED, and machine instructions stand in ptx.cuh alone (emulated_ptx.h has their twins).
 *
 * Overlap. Where the device can, a kernel may begin before the one in front of it has ended. So
 * every kernel calls wait_previous() before it reads or writes anything that an earlier kernel
 * of the frame writes or reads: activations, key-value memory, counts, tables. Weights are constant
 * and may be fetched before. It calls release_next() once, as early as its own shared memory
 * and registers allow the next one to be resident; this orders nothing. */
#pragma once

#include "kernels/cuda/launch.h"

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __CUDACC__
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/start.cuh"
#else
#include <emulated_ptx.h>
#endif

typedef __nv_bfloat16 bf16;

enum { WARP = 32 };
#define ALL_LANES 0xffffffffU

/* A live count read through its pointer, clamped to 0 .. capacity. */
static __device__ __forceinline__ int live_count(const int *count, int capacity)
{
    int n = *count;
    return n < 0 ? 0 : n > capacity ? capacity : n;
}

static __device__ __forceinline__ float warp_sum(float v)
{
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
}

static __device__ __forceinline__ float warp_max(float v)
{
    for (int o = 16; o; o >>= 1)
        v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, o));
    return v;
}

/* To the nearest bf16, ties to even; as float. */
static __device__ __forceinline__ float round_bf16(float v)
{
    return __bfloat162float(__float2bfloat16(v));
}
