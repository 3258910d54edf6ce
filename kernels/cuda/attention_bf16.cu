/* attention_bf16.cu - attention over bf16 keys and values, on tensor cores. */
#include "kernels/cuda/attention_mma.cuh"
#include "kernels/cuda/attention_wide.cuh"

void tec_cuda_attention_bf16(const struct tec_attention_args *a, struct tec_cuda_launch *launch)
{
    if (a->max_rows <= 0)
        return;
    int dim = a->head_dim;
    if (attention_is_wide(a)) {
        start_wide<bf16>(a, launch);
        return;
    }
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct attention_choice c = attention_choose_bf16(a, &facts);
    if (c.m == 64) {
        if (dim <= 64)
            start_mma<4, 4, 2, 0>(a, &c, launch);
        else if (dim <= 128)
            start_mma<4, 8, 1, 0>(a, &c, launch);
        else
            start_mma<4, 16, 1, 0>(a, &c, launch);
        return;
    }
    if (dim <= 64)
        start_mma<1, 1, 2, 0>(a, &c, launch);
    else if (dim <= 128)
        start_mma<1, 2, 2, 0>(a, &c, launch);
    else
        start_mma<1, 4, 1, 0>(a, &c, launch);
}
