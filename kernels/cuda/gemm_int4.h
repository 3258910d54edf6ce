/* gemm_int4.h - products of 4-bit weights, of few and of many rows. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT4_H
#define TEC_KERNELS_CUDA_GEMM_INT4_H

#include "kernels/cuda/gemm_int4_choice.h"
#include "kernels/cuda/launch.h"

/* Blocks make the digits of their rows. */
void tec_cuda_int4_few_mma(const struct tec_gemm_args *a, const struct digits_choice *choice,
                           struct tec_cuda_launch *launch);

/* Digits are written first: starts row_digits and a product for as many rows as there is room for
 * in launch->terms, then for the next ones. */
void tec_cuda_int4_many_mma(const struct tec_gemm_args *a, const struct digits_choice *choice,
                            struct tec_cuda_launch *launch);

#endif
