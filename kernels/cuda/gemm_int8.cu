/* gemm_int8.cu - y (+)= gate * (x W^T + bias), W of 8-bit weights; x perhaps a norm's output. */
#include "kernels/cuda/gemm_int8.h"
#include "kernels/cuda/gemm_int8_few_mma.cuh"
#include "kernels/cuda/gemm_leaving.cuh"
#include "kernels/cuda/gemm_then.cuh"

void tec_cuda_gemm_int8(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    bool first = int8_is_many(a->n, a->k, a->max_rows, a->digits, &facts);
    if (first && launch->groups)
        tec_cuda_int8_many_groups(a, launch);
    else if (first)
        tec_cuda_int8_many_mma(a, launch);
    else
        int8_few_mma_start<true>(a, NULL, leaving_finish(a, NULL), launch);
}

void tec_cuda_int8_leaving(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    int8_few_mma_start<true>(a, NULL, leaving_finish(a, launch->squares), launch);
}

bool tec_cuda_int8_normed(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          struct tec_cuda_launch *launch)
{
    return chain_apart(a, a->y, a->ldy) &&
           int8_few_mma_start<true>(a, norm, leaving_finish(a, NULL), launch);
}
