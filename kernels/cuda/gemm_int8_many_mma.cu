/* gemm_int8_many_mma.cu - y (+)= gate * (x W^T + bias), W of 8-bit weights, of many rows. */
#include "kernels/cuda/gemm_int8_many_mma.cuh"

#include "kernels/cuda/gemm_int8.h"

void tec_cuda_int8_many_mma(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct single_finish<store_rows> finish = {
        *a,
        {
            {}, a->y, a->ldy, a->add
        }
    };
    int8_many_mma_start_all(a, finish, launch);
}
