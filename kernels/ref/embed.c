/* embed.c - the reference embed kernels: scaled rows of an embedding table; an unknown id reads row
 * 0. */
#include "kernels/bf16.h"
#include "kernels/matrix.h"
#include "kernels/ref/ref.h"

static size_t table_row(const struct tec_embed_args *a, int r)
{
    int id = a->ids[r];
    return id >= 0 && id < a->n ? (size_t)id : 0;
}

void tec_embed_f32_ref(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *w = (const float *)a->w + table_row(a, r) * (size_t)a->k;
        float *y = a->y + ((size_t)*a->first + (size_t)r) * (size_t)a->ldy;
        for (int i = 0; i < a->k; i++)
            y[i] = a->scale * w[i];
    }
}

void tec_embed_bf16_ref(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const uint16_t *w =
            (const uint16_t *)a->w + table_row(a, r) * tec_matrix_stride(a->k, true);
        float *y = a->y + ((size_t)*a->first + (size_t)r) * (size_t)a->ldy;
        for (int i = 0; i < a->k; i++)
            y[i] = a->scale * tec_bf16_float(w[i]);
    }
}
