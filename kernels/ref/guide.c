/* guide.c - the reference guide kernel: velocities pulled towards a chunk that was computed before.
 */
#include "kernels/ref/ref.h"

void tec_guide_ref(const struct tec_guide_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        float *v = a->v + (size_t)r * (size_t)a->ldv;
        const float *x = a->x + (size_t)r * (size_t)a->ldx;
        const float *previous = a->previous + (size_t)r * (size_t)a->ldp;
        float pull = a->gain * a->weight[r];
        if (a->weight[r] == 0.0F)
            continue;
        for (int c = 0; c < a->cols; c++) {
            float step = a->time * v[c], end = x[c] - step, away = previous[c] - end;
            v[c] -= pull * away;
        }
    }
}
