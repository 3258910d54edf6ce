/* finish.h - bias, gate and residual of a GEMM; after a tier's panels.h. */
#ifndef TEC_KERNELS_PANELS_FINISH_H
#define TEC_KERNELS_PANELS_FINISH_H

#include "kernels/kernels.h"

/* `cols` columns (a multiple of 16) from column `at` of row `row` of y, out of their sums. */
VEC_INLINE void finish_row(const struct tec_gemm_args *a, const float *sums, int row, int at,
                           int cols)
{
    float *y = a->y + (size_t)row * (size_t)a->ldy + (size_t)at;
    for (int c = 0; c < cols; c += VEC_WIDTH) {
        vec sum = vec_load(sums + c);
        if (a->bias)
            sum = vec_add(sum, vec_load(a->bias + at + c));
        if (a->gate)
            sum = vec_mul(sum, vec_load(a->gate + at + c));
        if (a->add)
            sum = vec_add(vec_load(y + c), sum);
        vec_store(y + c, sum);
    }
}

#endif
