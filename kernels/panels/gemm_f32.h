/* gemm_f32.h - y = x W^T in float64 with W in float32 panels; after a tier's panels.h.
 *
 * Products of two float32 are exact in float64, so the fused chain over k = 0, 1, ... gives the
 * reference's bits. A panel is taken through all rows, as many at once as registers hold. */
#ifndef TEC_KERNELS_PANELS_GEMM_F32_H
#define TEC_KERNELS_PANELS_GEMM_F32_H

#include "kernels/panels/finish.h"

VEC_INLINE void wide_tile(const struct tec_gemm_args *a, const float *w, int row, int column,
                          int rows)
{
    enum { COLUMNS = 16, HALF = VEC_WIDTH / 2, VECTORS = COLUMNS / HALF };
    half sums[ROWS_WIDE * VECTORS];
    float done[COLUMNS];
    const float *x = a->x + (size_t)row * (size_t)a->ldx;
    TEC_UNROLL
    for (int i = 0; i < rows * VECTORS; i++)
        sums[i] = half_zero();
    for (int k = 0; k < a->k; k++, w += COLUMNS) {
        half weights[VECTORS];
        TEC_UNROLL
        for (int v = 0; v < VECTORS; v++)
            weights[v] = half_load(w + v * HALF);
        TEC_UNROLL
        for (int r = 0; r < rows; r++) {
            half all = half_set(x[(size_t)r * (size_t)a->ldx + (size_t)k]);
            TEC_UNROLL
            for (int v = 0; v < VECTORS; v++)
                sums[r * VECTORS + v] = half_fma(all, weights[v], sums[r * VECTORS + v]);
        }
    }
    TEC_UNROLL
    for (int r = 0; r < rows; r++) {
        TEC_UNROLL
        for (int v = 0; v < VECTORS; v++)
            half_store(done + v * HALF, sums[r * VECTORS + v]);
        finish_row(a, done, row + r, column, COLUMNS);
    }
}

VEC_TARGET static void run_f32(const struct tec_gemm_args *a, struct tec_part part)
{
    struct tec_range columns = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    for (int c = columns.first; c < columns.last; c += 16) {
        const float *w = (const float *)a->w + (size_t)c * (size_t)a->k;
        int r = 0;
        for (; r + ROWS_WIDE <= rows; r += ROWS_WIDE)
            wide_tile(a, w, r, c, ROWS_WIDE);
        for (; r + 2 <= rows; r += 2)
            wide_tile(a, w, r, c, 2);
        for (; r < rows; r++)
            wide_tile(a, w, r, c, 1);
    }
}

#endif
