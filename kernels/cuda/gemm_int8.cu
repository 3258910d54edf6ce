/* gemm_int8.cu - y (+)= gate * (x W^T + bias), W of 8-bit weights; x perhaps a norm's output. */
#include "kernels/cuda/gemm_int8.cuh"
#include "kernels/cuda/gemm_leaving.cuh"
#include "kernels/cuda/gemm_then.cuh"

static struct digits_choice choice_of(const struct tec_gemm_args *a,
                                      const struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    return int8_choose(a, &facts);
}

void tec_cuda_gemm_int8(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct digits_choice choice = choice_of(a, launch);
    if (choice.part > 0)
        start_int8_many(a, &choice, rows_finish(*a), launch);
    else
        start_int8_few<true>(a, NULL, &choice, leaving_finish(a, NULL), launch);
}

void tec_cuda_int8_leaving(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct digits_choice choice = choice_of(a, launch);
    start_int8_few<true>(a, NULL, &choice, leaving_finish(a, launch->squares), launch);
}

bool tec_cuda_int8_normed(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          struct tec_cuda_launch *launch)
{
    struct digits_choice choice = choice_of(a, launch);
    return chain_apart(a, a->y, a->ldy) &&
           start_int8_few<true>(a, norm, &choice, leaving_finish(a, NULL), launch);
}
