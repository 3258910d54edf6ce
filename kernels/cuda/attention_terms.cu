/* attention_terms.cu - attention over float32 keys and values on tensor cores, each number as two
 * bf16 terms. */
#include "kernels/cuda/attention_mma.cuh"
#include "kernels/cuda/attention_terms.h"

void tec_cuda_attention_terms(const struct tec_attention_args *a, const struct attention_choice *c,
                              struct tec_cuda_launch *launch)
{
    bool narrow = a->head_dim <= TERMS_NARROW;
    if (c->m == 64 && narrow)
        start_mma<4, 5, 1, 5>(a, c, launch);
    else if (c->m == 64)
        start_mma<4, 8, 1, 8>(a, c, launch);
    else if (narrow)
        start_mma<1, 2, 1, 5>(a, c, launch);
    else
        start_mma<1, 2, 1, 8>(a, c, launch);
}
