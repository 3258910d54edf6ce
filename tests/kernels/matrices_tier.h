/* matrices_tier.h - gemm_bf16 by emulated products of matrices of bf16 (matrices_emulated.h), as
 * one more tier of the harness. */
#ifndef TEC_TESTS_KERNELS_MATRICES_TIER_H
#define TEC_TESTS_KERNELS_MATRICES_TIER_H

#include "kernels/kernels.h"

/* The kernels of this machine's least vectors, which must be there (tiles_tier.h), with gemm_bf16
 * element by element, a step for each two k, where x holds bf16 values. */
struct tec_kernels matrices_tier_table(void);

#endif
