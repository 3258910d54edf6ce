/* attention_whole.c - the AVX-512 attention kernels in whole numbers, for processors with VNNI.
 *
 * kernels/vector/attention_whole.inc has the algorithm; attention that may not be rounded so goes
 * the other way. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/whole.h"

#include "kernels/vector/attention_whole.inc"

void tec_whole_attention_f32_avx512(const struct tec_attention_args *a, struct tec_part part)
{
    if (attends_whole(a))
        attend_whole(a, part, 0);
    else
        tec_attention_f32_avx512(a, part);
}

void tec_whole_attention_bf16_avx512(const struct tec_attention_args *a, struct tec_part part)
{
    if (attends_whole(a))
        attend_whole(a, part, 1);
    else
        tec_attention_bf16_avx512(a, part);
}

#endif
