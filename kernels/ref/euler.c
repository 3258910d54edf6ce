/* euler.c - the reference euler kernel: x += dt * v in float32, except for rows that are fixed. */
#include "kernels/ref/ref.h"

void tec_euler_ref(const struct tec_euler_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *v = a->v + (size_t)r * (size_t)a->ldv;
        float *x = a->x + (size_t)r * (size_t)a->ldx;
        if (tec_is_fixed(a->fixed, r))
            continue;
        for (int c = 0; c < a->cols; c++)
            x[c] += a->dt * v[c];
    }
}
