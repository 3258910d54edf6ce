/* gemm_int4.cu - y (+)= gate * (x W^T + bias), W of 4-bit weights in groups (kernels/int4.h). */
#include "kernels/cuda/gemm_int4.h"

void tec_cuda_gemm_int4(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct digits_choice choice = int4_choose(a, &facts);
    (choice.part > 0 ? tec_cuda_int4_many_mma : tec_cuda_int4_few_mma)(a, &choice, launch);
}
