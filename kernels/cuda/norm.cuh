/* norm.cuh - the arithmetic of norms, one for the kernel that is a norm and for products that
 * begin with one.
 *
 * The order of a row's sum follows from its columns alone. That of squares, of rmsnorm: the four
 * columns of a quad in a chain; the four quads of a panel of 16 columns as a tree; panels p, p +
 * 64, p + 128 ... in their order, which makes 64 sums; of these g, g + 8, ... g + 56 in their
 * order; then the tree of the eight that are left. So whoever has a whole panel can leave its sum
 * for somebody else to add (gemm_norm.cuh). Other sums are those of a block of norm_threads():
 * thread t adds up the quads t, t + threads, ...; then lane by lane the warps' threads in their
 * order; then the tree of the 32 lanes. Operations are named, so no compiler joins them in one
 * kernel and not in the other.
 */
#pragma once

#include "kernels/cuda/row.cuh"

enum {
    NORM_WARPS = NORM_THREADS / WARP,
    PANEL = 4 * QUAD,                    /* columns */
    WARP_PANELS = WARP / 4,              /* that a warp has at a time, a quad in each lane */
    NORM_SUMS = NORM_WARPS * WARP_PANELS /* sums of panels */
};

static __device__ __forceinline__ float add_square(float sum, float v)
{
    return __fmaf_rn(v, v, sum);
}

static __device__ __forceinline__ float quad_squares(const float v[QUAD])
{
    return add_square(add_square(add_square(__fmul_rn(v[0], v[0]), v[1]), v[2]), v[3]);
}

/* Of the quads of four neighbouring lanes; all lanes of the warp are here. */
static __device__ __forceinline__ float panel_squares(float quad)
{
    quad += __shfl_xor_sync(ALL_LANES, quad, 1);
    return quad + __shfl_xor_sync(ALL_LANES, quad, 2);
}

/* The last eight sums, `lanes` lanes from one another. */
static __device__ __forceinline__ float tree_of_eight(float v, int lanes)
{
    for (int o = 4 * lanes; o >= lanes; o /= 2)
        v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
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
