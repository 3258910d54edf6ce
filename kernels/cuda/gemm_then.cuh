/* gemm_then.cuh - a product with the kernels in front of it and behind it as one; each kind of
 * them in a file. */
#pragma once

#include "kernels/cuda/gemm_groups_kernel.cuh"
#include "kernels/cuda/row.cuh"

/* Start all of it; false: they are not done together, and nothing was started. With a norm, a->x
 * and a->ldx are those of the norm; NULL = none. */
bool tec_cuda_gemm_normed(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          struct tec_cuda_launch *launch);
#define THEN(kernel, args, input)                                        \
    bool tec_cuda_gemm_then_##kernel(                                    \
        const struct tec_gemm_args *a, const struct tec_norm_args *norm, \
        const struct tec_##args##_args *then, struct tec_cuda_launch *launch);
#include "kernels/cuda/chains.def"
#undef THEN

/* True if the output does not overlap x, which other blocks may still read. */
static inline bool apart(const struct tec_gemm_args *a, const float *to, int ld)
{
    uintptr_t x = reinterpret_cast<uintptr_t>(a->x), y = reinterpret_cast<uintptr_t>(to);
    size_t rows = (size_t)a->max_rows * sizeof(float);
    return y + rows * (size_t)ld <= x || x + rows * (size_t)a->ldx <= y;
}

/* With tiles of 8 to 32 rows where FEW. */
template <bool FEW, class Finish>
static bool start_product(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          const Finish &finish, struct tec_cuda_launch *launch)
{
    int columns = launch->groups ? (int)groups_64::COLUMNS : (int)rows_64_narrow::COLUMNS;
    struct split split = split_of(a->n, a->k, columns);
    if (!floats_aligned(a->x, a->ldx) || (uintptr_t)a->w % 16) { /* it is copied in 16 bytes */
        launch->error = launch->error != cudaSuccess ? launch->error : cudaErrorInvalidValue;
        return true;
    }
    if (launch->groups) {
        struct group_product<Finish> product = {
            {a, finish, split, launch},
            {
                {}, norm != NULL
            }
        };
        if (norm)
            product.front.a = *norm;
        return product.template start_any<FEW>();
    }
    if (norm) {
        struct product<Finish, true> product = {
            a, finish, split, launch,
            {
                *norm
            }
        };
        if constexpr (FEW)
            if (product.start_few())
                return true;
        return product.template start_64<rows_64>();
    }
    struct product<Finish> product = {
        a, finish, split, launch
    };
    if constexpr (FEW)
        if (product.start_few())
            return true;
    if (a->rounded)
        product.template start_many<rounded_rows_64, rounded_rows_128>();
    else
        product.template start_many<rows_64, rows_128>();
    return true;
}

template <class Then>
static bool start_pairs(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                        const Then &then, struct tec_cuda_launch *launch)
{
    return start_product<true>(a, norm, pair_finish<Then>{*a, then}, launch);
}

/* Start the chain of a vision tower, which has many rows. */
template <class Then>
static bool start_singles(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          const Then &then, struct tec_cuda_launch *launch)
{
    return a->max_rows > 32 && start_product<false>(a, norm, single_finish<Then>{*a, then}, launch);
}
