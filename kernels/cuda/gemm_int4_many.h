/* gemm_int4_many.h - products of 4-bit weights with many rows, whose digits are written first. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT4_MANY_H
#define TEC_KERNELS_CUDA_GEMM_INT4_MANY_H

#include "kernels/cuda/launch.h"

/* gemm_int4 where gemm_choice.h takes a tile of many rows: starts row_digits and a product for as
 * many rows as there is room for in launch->terms, then for the next ones. */
void tec_cuda_gemm_int4_many(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);

#endif
