/* gemm_int4.cu - y (+)= gate * (x W^T + bias), W of 4-bit weights in groups (kernels/int4.h). */
#include "kernels/cuda/gemm_int4.h"
#include "kernels/cuda/gemm_int4_choice.h"

void tec_cuda_gemm_int4(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    if (int4_is_many(a->max_rows, a->order && a->order_of, a->k, a->group, a->digits, &facts))
        tec_cuda_int4_many_mma(a, launch);
    else
        tec_cuda_int4_few_mma(a, launch);
}
