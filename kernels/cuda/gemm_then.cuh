/* gemm_then.cuh - a product and the kernel behind it as one; each pair of them in a file. */
#pragma once

#include "kernels/cuda/gemm_kernel.cuh"

/* Start both; false: they are not done together, and nothing was started. */
bool tec_cuda_gemm_then_gelu(const struct tec_gemm_args *a, const struct tec_map_args *then,
                             struct tec_cuda_launch *launch);
bool tec_cuda_gemm_then_gated(const struct tec_gemm_args *a, const struct tec_gated_args *then,
                              struct tec_cuda_launch *launch);
bool tec_cuda_gemm_then_rope(const struct tec_gemm_args *a, const struct tec_rope_args *then,
                             bool bf16, struct tec_cuda_launch *launch);

/* Nothing of x is written while other blocks may still read it. */
static inline bool apart(const struct tec_gemm_args *a, const float *to, int ld)
{
    uintptr_t x = reinterpret_cast<uintptr_t>(a->x), y = reinterpret_cast<uintptr_t>(to);
    size_t rows = (size_t)a->max_rows * sizeof(float);
    return y + rows * (size_t)ld <= x || x + rows * (size_t)a->ldx <= y;
}

template <class Then, class Args>
static bool start_pairs(const struct tec_gemm_args *a, const Args *then,
                        struct tec_cuda_launch *launch)
{
    struct product<pair_finish<Then>> product = {
        a, {*a, {*then}}, split_of(a->n, a->k), launch
    };
    if (!product.start_few())
        product.start_many();
    return true;
}

/* What only towers do, which have many rows. */
template <class Then, class Args>
static bool start_singles(const struct tec_gemm_args *a, const Args *then,
                          struct tec_cuda_launch *launch)
{
    struct product<single_finish<Then>> product = {
        a, {*a, {*then}}, split_of(a->n, a->k), launch
    };
    if (a->max_rows > 32)
        product.start_many();
    return a->max_rows > 32;
}
