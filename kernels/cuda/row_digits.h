/* row_digits.h - rows of x as signed digits in device memory, in the order in which products of
 * bytes read them. */
#ifndef TEC_KERNELS_CUDA_ROW_DIGITS_H
#define TEC_KERNELS_CUDA_ROW_DIGITS_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_digits_room.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Write the digits and units of rows first .. first + count - 1 of a->x to launch->terms, which has
 * room for them; those that do not live are left as they are. `order`: k j is column order[j] of x;
 * NULL: as they are. The group is a multiple of 8. Starts one kernel. */
void tec_cuda_row_digits(const struct tec_gemm_args *a, const struct tec_cuda_digits *form,
                         const int *order, int first, int count, struct tec_cuda_launch *launch);

#ifdef __cplusplus
}
#endif

/* The digits of all of a->x, where the kernel in front has left them, which takes them from the
 * launch; NULL: x is float32. */
static inline unsigned char *tec_cuda_digits_ready(const struct tec_gemm_args *a,
                                                   const struct tec_cuda_digits *form,
                                                   struct tec_cuda_launch *launch)
{
    struct tec_cuda_terms *ready = &launch->ready;
    if (!ready->of || ready->of != a->x || ready->digits != form->digits || ready->k != form->k ||
        ready->rows != a->max_rows)
        return NULL;
    ready->of = NULL;
    return ready->at;
}

#endif
