/* attention_whole.c - the AVX2 attention kernels in whole numbers.
 *
 * kernels/vector/attention_whole.inc has the algorithm; attention that may not be rounded so goes
 * the other way. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/whole.h"

#include "kernels/vector/attention_whole.inc"

void tec_madd_attention_f32_avx2(const struct tec_attention_args *a, struct tec_part part)
{
    if (attends_whole(a))
        attend_whole(a, part, 0);
    else
        tec_attention_f32_avx2(a, part);
}

void tec_madd_attention_bf16_avx2(const struct tec_attention_args *a, struct tec_part part)
{
    if (attends_whole(a))
        attend_whole(a, part, 1);
    else
        tec_attention_bf16_avx2(a, part);
}

#endif
