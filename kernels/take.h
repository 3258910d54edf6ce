/* take.h - where take_rows finds and puts a row, on every tier of the CPU. */
#ifndef TEC_KERNELS_TAKE_H
#define TEC_KERNELS_TAKE_H

#include "kernels/args.h"

#include <stddef.h>

static inline const float *tec_take_from(const struct tec_take_args *a, int r)
{
    int row = a->row[r];
    return a->x + (size_t)(row >= 0 && row < a->x_rows ? row : 0) * (size_t)a->ldx;
}

static inline float *tec_take_to(const struct tec_take_args *a, int r)
{
    return a->y + (size_t)(r / a->group) * (size_t)a->ldy +
           (size_t)(r % a->group) * (size_t)a->cols;
}

#endif
