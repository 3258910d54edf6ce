/* pairs_tier.h - the kernel for dot products of bf16 pairs on emulated ones (pairs_emulated.h), as
 * one more tier of the harness. */
#ifndef TEC_TESTS_KERNELS_PAIRS_TIER_H
#define TEC_TESTS_KERNELS_PAIRS_TIER_H

#include "kernels/kernels.h"

/* The kernels of this machine's least vectors, which must be there (tiles_tier.h), with gemm_bf16
 * by pairs where x holds bf16 values. */
struct tec_kernels pairs_tier_table(void);

#endif
