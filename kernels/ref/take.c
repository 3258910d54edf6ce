#include "kernels/take.h"
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

void tec_take_rows_ref(const struct tec_take_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = tec_take_from(a, r);
        float *y = tec_take_to(a, r);
        for (int c = 0; c < a->cols; c++)
            y[c] = a->round ? tec_bf16_round(x[c]) : x[c];
    }
}
