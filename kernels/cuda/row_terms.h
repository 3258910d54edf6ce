/* row_terms.h - rows of x as bf16 terms in device memory, in the order in which products by warp
 * groups read them. */
#ifndef TEC_KERNELS_CUDA_ROW_TERMS_H
#define TEC_KERNELS_CUDA_ROW_TERMS_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_terms_room.h"

/* Write the terms of rows first .. first + count - 1 of a->x to launch->terms; those that do not
 * live are left as they are. Columns from a->k on are zero. Starts one kernel. */
void tec_cuda_row_terms(const struct tec_gemm_args *a, int terms, int first, int count,
                        struct tec_cuda_launch *launch);

/* The terms of all of a->x, where the kernel in front has left them, which takes them from the
 * launch; NULL: x is float32. */
static inline const unsigned char *tec_cuda_terms_ready(const struct tec_gemm_args *a, int terms,
                                                        struct tec_cuda_launch *launch)
{
    struct tec_cuda_terms *ready = &launch->ready;
    if (!ready->of || ready->of != a->x || ready->digits || ready->terms != terms ||
        ready->k != a->k)
        return NULL;
    ready->of = NULL;
    return ready->at;
}

#endif
