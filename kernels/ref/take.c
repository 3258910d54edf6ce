/* take.c - the reference take_rows kernel: copies chosen rows, `group` of them side by side in one
 * wide row. */
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

void tec_take_rows_ref(const struct tec_take_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        int row = a->row[r] >= 0 && a->row[r] < a->x_rows ? a->row[r] : 0;
        const float *x = a->x + (size_t)row * (size_t)a->ldx;
        float *y = a->y + (size_t)(r / a->group) * (size_t)a->ldy +
                   (size_t)(r % a->group) * (size_t)a->cols;
        for (int c = 0; c < a->cols; c++)
            y[c] = a->round ? tec_bf16_round(x[c]) : x[c];
    }
}
