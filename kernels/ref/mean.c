/* mean.c - the reference mean_rows kernel: means of spans of rows.
 *
 * Sums are float64, with rows in order, one division and one rounding: the same bits on every tier.
 * Columns are taken 64 at a time, so that their sums stay on the stack while rows are read in
 * order. */
#include "kernels/ref/ref.h"

void tec_mean_rows_ref(const struct tec_mean_args *a, struct tec_part part)
{
    enum { TOGETHER = 64 };
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        struct tec_span s = tec_rows_within(a->span[r], a->x_rows);
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int c = 0; c < a->cols; c += TOGETHER) {
            int n = a->cols - c < TOGETHER ? a->cols - c : TOGETHER;
            double sum[TOGETHER] = {0};
            for (int i = 0; i < s.length; i++) {
                const float *x = a->x + ((size_t)s.slot + (size_t)i) * (size_t)a->ldx + c;
                for (int k = 0; k < n; k++)
                    sum[k] += (double)x[k];
            }
            for (int k = 0; k < n; k++)
                y[c + k] = s.length ? (float)(sum[k] / (double)s.length) : 0.0F;
        }
    }
}
