/* gemm_int8_groups.h - many rows of 8-bit weights by warp groups. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT8_GROUPS_H
#define TEC_KERNELS_CUDA_GEMM_INT8_GROUPS_H

#include "kernels/cuda/launch.h"

/* gemm_int8 where digits_first of gemm_choice.h and launch->groups say so: starts row_digits and a
 * product for as many rows as there is room for in launch->terms, then for the next ones. */
void tec_cuda_gemm_int8_groups(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);

#endif
