/* gemm_int8.cuh - products with 8-bit weights (kernels/int8.h) of any number of rows, for any
 * finish. */
#pragma once

#include "kernels/cuda/gemm_int8_few_mma.cuh"
#include "kernels/cuda/gemm_int8_many_groups.cuh"
#include "kernels/cuda/gemm_int8_many_mma.cuh"

/* Start a product of any number of rows. */
template <bool FEW, class Finish>
static bool start_int8(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                       const Finish &finish, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    if (norm || !int8_is_many(a->n, a->k, a->max_rows, a->digits, &facts))
        return int8_few_mma_start<FEW>(a, norm, finish, launch);
    if (launch->groups)
        int8_many_groups_start_all(a, finish, launch);
    else
        int8_many_mma_start_all(a, finish, launch);
    return true;
}
