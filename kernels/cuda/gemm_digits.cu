/* gemm_digits.cu - y (+)= gate * (x W^T + bias), W of 8-bit weights, of many rows. */
#include "kernels/cuda/gemm_digits.cuh"

#include "kernels/cuda/gemm_digits.h"

void tec_cuda_gemm_digits(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct single_finish<store_rows> finish = {
        *a,
        {
            {}, a->y, a->ldy, a->add
        }
    };
    digits_start_all(a, finish, launch);
}
