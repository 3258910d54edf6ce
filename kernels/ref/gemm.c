/* gemm.c - the reference gemm_f32 and gemm_bf16 kernels: y = x W^T over plain rows of W.
 *
 * Each (row, column) is one sum over k = 0, 1, 2, ... and lanes share columns only, so the bytes do
 * not depend on the number of rows or lanes. gemm_f32 sums in float64: what the vector tiers
 * are held to. */
#include "kernels/bf16.h"
#include "kernels/matrix.h"
#include "kernels/ref/gemm_finish.h"
#include "kernels/ref/ref.h"

/* Columns whose sums are made side by side: each x is read and rounded once for all of them, and a
 * processor adds to one sum while the sum before it is not there yet. Every sum has its own order.
 */
enum { COLUMNS = 8 };

/* Row r of x; of windows made in `room`, as unfold makes them. */
static const float *row_of(const struct tec_gemm_args *a, int r, float room[TEC_WINDOWS_K])
{
    const struct tec_windows *w = a->windows;
    if (!w)
        return a->x + (size_t)r * (size_t)a->ldx;
    int top = r / w->out_w * w->stride - w->pad, left = r % w->out_w * w->stride - w->pad;
    for (int i = 0; i < a->k; i++) {
        int pixel = i / w->cols, y = top + pixel / w->side * w->dilation,
            x = left + pixel % w->side * w->dilation;
        bool inside = y >= 0 && y < w->in_h && x >= 0 && x < w->in_w;
        size_t at = inside ? (size_t)y * (size_t)w->in_w + (size_t)x : 0;
        room[i] = inside ? a->x[at * (size_t)a->ldx + (size_t)(i % w->cols)] : 0.0F;
    }
    return room;
}

/* The products of one row of x with n <= COLUMNS rows of w that lie `stride` apart. */
static inline void dots_f32(const float *x, const float *w, size_t stride, int k, int n, float *y)
{
    double sums[COLUMNS] = {0};
    for (int i = 0; i < k; i++)
        for (int c = 0; c < n; c++)
            sums[c] += (double)x[i] * (double)w[(size_t)c * stride + (size_t)i];
    for (int c = 0; c < n; c++)
        y[c] = (float)sums[c];
}

/* The product of two bf16 is exact in float32. So a fused multiply-add in the same order gives the
 * same sum, unless a product underflows. */
static inline void dots_bf16(const float *x, const uint16_t *w, size_t stride, int k, int n,
                             bool two, float *y)
{
    float sums[COLUMNS] = {0};
    for (int i = 0; i < k; i++) {
        float value = two ? tec_bf16_two(x[i]) : x[i];
        for (int c = 0; c < n; c++)
            sums[c] += value * tec_bf16_float(w[(size_t)c * stride + (size_t)i]);
    }
    for (int c = 0; c < n; c++)
        y[c] = sums[c];
}

void tec_gemm_f32_ref(const struct tec_gemm_args *a, struct tec_part part)
{
    struct tec_range columns = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    size_t stride = (size_t)a->k;
    for (int first = columns.first; first < columns.last; first += COLUMNS) {
        const float *w = (const float *)a->w + (size_t)first * stride;
        int n = columns.last - first < COLUMNS ? columns.last - first : COLUMNS;
        for (int r = 0; r < rows; r++) {
            float room[TEC_WINDOWS_K], sums[COLUMNS];
            const float *x = row_of(a, r, room);
            if (n == COLUMNS) /* a constant, for the compiler */
                dots_f32(x, w, stride, a->k, COLUMNS, sums);
            else
                dots_f32(x, w, stride, a->k, n, sums);
            for (int c = 0; c < n; c++)
                finish(a, r, first + c, sums[c]);
        }
    }
}

void tec_gemm_bf16_ref(const struct tec_gemm_args *a, struct tec_part part)
{
    struct tec_range columns = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    size_t stride = tec_matrix_stride(a->k, true);
    for (int first = columns.first; first < columns.last; first += COLUMNS) {
        const uint16_t *w = (const uint16_t *)a->w + (size_t)first * stride;
        int n = columns.last - first < COLUMNS ? columns.last - first : COLUMNS;
        for (int r = 0; r < rows; r++) {
            const float *x = a->x + (size_t)r * (size_t)a->ldx;
            float sums[COLUMNS];
            if (n == COLUMNS)
                dots_bf16(x, w, stride, a->k, COLUMNS, a->terms == 2, sums);
            else
                dots_bf16(x, w, stride, a->k, n, a->terms == 2, sums);
            for (int c = 0; c < n; c++)
                finish(a, r, first + c, sums[c]);
        }
    }
}
