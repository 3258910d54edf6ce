/* embed.c - the AVX2 embed kernels: scaled rows of an embedding table that is stored in panels.
 *
 * In panels a row of the table has one element (f32) or one pair (bf16) in each line of 64 bytes,
 * so the time goes into fetching lines: plain C reads them as fast as they arrive. */
#include "kernels/avx2/avx2.h"
#include "kernels/bf16.h"

#if defined(__x86_64__)

enum { PANEL = 16 };

static size_t table_row(const struct tec_embed_args *a, int r)
{
    int id = a->ids[r];
    return id >= 0 && id < a->n ? (size_t)id : 0;
}

static float *out_row(const struct tec_embed_args *a, int r)
{
    return a->y + ((size_t)*a->first + (size_t)r) * (size_t)a->ldy;
}

void tec_embed_f32_avx2(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        size_t id = table_row(a, r);
        const float *w = (const float *)a->w + id / PANEL * PANEL * (size_t)a->k + id % PANEL;
        float *y = out_row(a, r);
        for (int i = 0; i < a->k; i++)
            y[i] = a->scale * w[(size_t)i * PANEL];
    }
}

void tec_embed_bf16_avx2(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    size_t pairs = ((size_t)a->k + 1) / 2;
    for (int r = rows.first; r < rows.last; r++) {
        size_t id = table_row(a, r);
        const uint16_t *w = (const uint16_t *)a->w + (id / PANEL * pairs * PANEL + id % PANEL) * 2;
        float *y = out_row(a, r);
        int i = 0;
        for (; i + 1 < a->k; i += 2, w += (size_t)2 * PANEL) {
            y[i] = a->scale * tec_bf16_float(w[0]);
            y[i + 1] = a->scale * tec_bf16_float(w[1]);
        }
        if (i < a->k)
            y[i] = a->scale * tec_bf16_float(w[0]);
    }
}

#endif
