/* gemm_int4.h - products of 4-bit weights, of few and of many rows. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT4_H
#define TEC_KERNELS_CUDA_GEMM_INT4_H

#include "kernels/cuda/launch.h"

/* gemm_int4 of few rows, or of panels with orders of their own: each block makes the digits of its
 * rows. */
void tec_cuda_int4_few_mma(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);

/* gemm_int4 of many rows, whose digits are written first: starts row_digits and a product for as
 * many rows as there is room for in launch->terms, then for the next ones. */
void tec_cuda_int4_many_mma(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);

#endif
