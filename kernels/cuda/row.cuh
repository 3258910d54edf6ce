/* row.cuh - four columns of a row for each thread: reading, writing, and the grid that does it.
 *
 * Kernels that treat columns alone use ROW_THREADS threads a block, rows along x, and quads of
 * columns along y. Whole quads move as 16 bytes where the launcher found every row aligned
 * (`wide`), else one by one; the values are the same. */
#pragma once

#include "kernels/cuda/lang.cuh"
#include "kernels/cuda/row_grid.h"

/* Up to four columns from one place on. */
struct quad {
    float v[QUAD];
};

/* Columns p[0 .. n - 1], n perhaps beyond 4 or below 0; the rest are 0. */
static __device__ __forceinline__ struct quad quad_load(const float *p, int n, bool wide)
{
    struct quad q = {{0.0F, 0.0F, 0.0F, 0.0F}};
    if (wide && n >= QUAD) {
        float4 v = *reinterpret_cast<const float4 *>(p);
        q.v[0] = v.x;
        q.v[1] = v.y;
        q.v[2] = v.z;
        q.v[3] = v.w;
        return q;
    }
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        if (i < n)
            q.v[i] = p[i];
    return q;
}

static __device__ __forceinline__ void quad_store(float *p, struct quad q, int n, bool wide)
{
    if (wide && n >= QUAD) {
        *reinterpret_cast<float4 *>(p) = make_float4(q.v[0], q.v[1], q.v[2], q.v[3]);
        return;
    }
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        if (i < n)
            p[i] = q.v[i];
}

/* Load a quad of columns that are bf16 in memory. */
static __device__ __forceinline__ struct quad quad_load(const bf16 *p, int n, bool wide)
{
    struct quad q = {{0.0F, 0.0F, 0.0F, 0.0F}};
    if (wide && n >= QUAD) {
        uint2 v = *reinterpret_cast<const uint2 *>(p);
        q.v[0] = __int_as_float((int)(v.x << 16));
        q.v[1] = __int_as_float((int)(v.x & 0xffff0000U));
        q.v[2] = __int_as_float((int)(v.y << 16));
        q.v[3] = __int_as_float((int)(v.y & 0xffff0000U));
        return q;
    }
    TEC_UNROLL
    for (int i = 0; i < QUAD; i++)
        if (i < n)
            q.v[i] = __bfloat162float(p[i]);
    return q;
}

/* The first column of this thread. */
static __device__ __forceinline__ int quad_column()
{
    return (int)(blockIdx.y * ROW_THREADS + threadIdx.x) * QUAD;
}

static inline dim3 quad_grid(int rows, int cols)
{
    return dim3((unsigned)rows, (unsigned)ceil_div(cols, ROW_COLUMNS));
}
