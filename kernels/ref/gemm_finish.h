/* gemm_finish.h - what becomes of a product's sum, whatever its weights are: bias, gate, add. */
#ifndef TEC_KERNELS_REF_GEMM_FINISH_H
#define TEC_KERNELS_REF_GEMM_FINISH_H

#include "kernels/kernels.h"

/* y[r, c] = or += gate[c] * (sum + bias[c]), each rounded to float32 in this order. */
static inline void finish(const struct tec_gemm_args *a, int r, int c, float sum)
{
    float *y = a->y + (size_t)r * (size_t)a->ldy + (size_t)c;
    if (a->bias)
        sum += a->bias[c];
    const float *gate = tec_is_fixed(a->fixed, r) ? a->fixed_gate : a->gate;
    if (gate)
        sum *= gate[c];
    *y = a->add ? *y + sum : sum;
}

#endif
