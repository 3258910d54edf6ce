/* gemm_int8.h - products of 8-bit weights with many rows, whose digits are written first. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT8_H
#define TEC_KERNELS_CUDA_GEMM_INT8_H

#include "kernels/cuda/launch.h"

/* gemm_int8 where gemm_int8_choice.h takes tiles of many rows: starts row_digits and a product for
 * as many rows as there is room for in launch->terms, then for the next ones. By mma, or by warp
 * groups. */
void tec_cuda_int8_many_mma(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);
void tec_cuda_int8_many_groups(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);

#endif
