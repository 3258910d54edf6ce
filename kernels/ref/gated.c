/* gated.c - the reference gated activations, f(gate) * up, in float64 and rounded once. */
#include "kernels/bf16.h"
#include "kernels/ref/activation.h"
#include "kernels/ref/ref.h"

static void gated(const struct tec_gated_args *a, struct tec_part part, double (*f)(double x))
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *gate = a->x + (size_t)r * (size_t)a->ldx + a->gate_at;
        const float *up = a->x + (size_t)r * (size_t)a->ldx + a->up_at;
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int c = 0; c < a->cols; c++) {
            float v = (float)(f((double)gate[c]) * (double)up[c]);
            y[c] = a->round ? tec_bf16_round(v) : v;
        }
    }
}

void tec_gelu_mul_ref(const struct tec_gated_args *a, struct tec_part part)
{
    gated(a, part, tec_gelu);
}

void tec_silu_mul_ref(const struct tec_gated_args *a, struct tec_part part)
{
    gated(a, part, tec_silu);
}
