/* read_kv.c - the reference read_kv kernels: copies keys or values from slots to rows of
 * float32. */
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

void tec_read_kv_f32_ref(const struct tec_read_kv_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *kv = (const float *)a->kv + (size_t)a->slot[r] * (size_t)a->cols;
        for (int c = 0; c < a->cols; c++)
            a->y[(size_t)r * (size_t)a->ldy + (size_t)c] = kv[c];
    }
}

void tec_read_kv_bf16_ref(const struct tec_read_kv_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const uint16_t *kv = (const uint16_t *)a->kv + (size_t)a->slot[r] * (size_t)a->cols;
        for (int c = 0; c < a->cols; c++)
            a->y[(size_t)r * (size_t)a->ldy + (size_t)c] = tec_bf16_float(kv[c]);
    }
}
