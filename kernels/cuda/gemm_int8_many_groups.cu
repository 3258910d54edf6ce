/* gemm_int8_many_groups.cu - y (+)= gate * (x W^T + bias), W of 8-bit weights, of many rows, by
 * warp groups. */
#include "kernels/cuda/gemm_int8_many_groups.cuh"

#include "kernels/cuda/gemm_int8.h"

void tec_cuda_int8_many_groups(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct single_finish<store_rows> finish = {
        *a,
        {
            {}, a->y, a->ldy, a->add
        }
    };
    int8_many_groups_start_all(a, finish, launch);
}
