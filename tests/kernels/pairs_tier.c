/* pairs_tier.c - the kernel for dot products of bf16 pairs, compiled for emulated ones: a tier of
 * the harness on every machine. */
#include "tests/kernels/pairs_tier.h"

#include "tests/kernels/pairs_emulated.h"

#include "kernels/panels/gemm_pairs.inc"

#if defined(__x86_64__)
enum { VECTORS = TEC_TIER_avx2 };
#else
enum { VECTORS = TEC_TIER_neon };
#endif

static void gemm_bf16(const struct tec_gemm_args *a, struct tec_part part)
{
    if (a->rounded)
        run_pairs(a, part);
    else
        tec_kernels_for((enum tec_tier)VECTORS).gemm_bf16(a, part);
}

struct tec_kernels pairs_tier_table(void)
{
    struct tec_kernels table = tec_kernels_for((enum tec_tier)VECTORS);
    table.gemm_bf16 = gemm_bf16;
    return table;
}
