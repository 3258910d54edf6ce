/* gemm.c - the reference gemm_f32 and gemm_bf16 kernels: y = x W^T over plain rows of W.
 *
 * Each (row, column) is one sum over k = 0, 1, 2, ... and lanes share columns only, so the bytes do
 * not depend on the number of rows or lanes. gemm_f32 sums in float64: what the vector tiers
 * are held to. */
#include "kernels/bf16.h"
#include "kernels/matrix.h"
#include "kernels/ref/gemm_finish.h"
#include "kernels/ref/ref.h"

static float dot_f32(const float *x, const float *w, int k)
{
    double sum = 0.0;
    for (int i = 0; i < k; i++)
        sum += (double)x[i] * (double)w[i];
    return (float)sum;
}

/* The product of two bf16 is exact in float32. So a fused multiply-add in the same order gives the
 * same sum, unless a product underflows. */
static float dot_bf16(const float *x, const uint16_t *w, int k, bool two)
{
    float sum = 0.0F;
    for (int i = 0; i < k; i++)
        sum += (two ? tec_bf16_two(x[i]) : x[i]) * tec_bf16_float(w[i]);
    return sum;
}

void tec_gemm_f32_ref(const struct tec_gemm_args *a, struct tec_part part)
{
    struct tec_range columns = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    for (int c = columns.first; c < columns.last; c++) {
        const float *w = (const float *)a->w + (size_t)c * (size_t)a->k;
        for (int r = 0; r < rows; r++)
            finish(a, r, c, dot_f32(a->x + (size_t)r * (size_t)a->ldx, w, a->k));
    }
}

void tec_gemm_bf16_ref(const struct tec_gemm_args *a, struct tec_part part)
{
    struct tec_range columns = tec_share(part, a->n, 16);
    int rows = tec_live(a->rows, a->max_rows);
    for (int c = columns.first; c < columns.last; c++) {
        const uint16_t *w = (const uint16_t *)a->w + (size_t)c * tec_matrix_stride(a->k, true);
        for (int r = 0; r < rows; r++)
            finish(a, r, c, dot_bf16(a->x + (size_t)r * (size_t)a->ldx, w, a->k, a->terms == 2));
    }
}
