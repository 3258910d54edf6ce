/* window.c - the reference kernels that go over a picture in windows: unfold and max_pool. */
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

#include <math.h>

/* The pixel (i, j) of window r, or NULL where it lies outside the picture. */
static const float *pixel(const struct tec_window_args *a, int r, int i, int j)
{
    int y = r / a->out_w * a->stride - a->pad + i * a->dilation;
    int x = r % a->out_w * a->stride - a->pad + j * a->dilation;
    bool inside = y >= 0 && y < a->in_h && x >= 0 && x < a->in_w;
    return inside ? a->x + ((size_t)y * (size_t)a->in_w + (size_t)x) * (size_t)a->ldx : NULL;
}

void tec_unfold_ref(const struct tec_window_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int k = 0; k < a->side * a->side; k++) {
            const float *x = pixel(a, r, k / a->side, k % a->side);
            for (int c = 0; c < a->cols; c++) {
                float v = x ? x[c] : 0.0F;
                *y++ = a->round ? tec_bf16_round(v) : v;
            }
        }
    }
}

void tec_max_pool_ref(const struct tec_window_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++)
        for (int c = 0; c < a->cols; c++) {
            float most = -INFINITY;
            for (int k = 0; k < a->side * a->side; k++) {
                const float *x = pixel(a, r, k / a->side, k % a->side);
                most = x && x[c] > most ? x[c] : most;
            }
            a->y[(size_t)r * (size_t)a->ldy + (size_t)c] = most;
        }
}
