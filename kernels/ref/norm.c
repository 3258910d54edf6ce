/* norm.c - the reference layernorm, rmsnorm and head_norm kernels. */
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

#include <math.h>
#include <stddef.h>

/* Write a normalised row. Everything is float64 up to here, so the result is the value of the
 * formula rounded once. */
static void write_row(const struct tec_norm_args *a, int row, double mean, double scale)
{
    const float *x = a->x + (size_t)row * (size_t)a->ldx;
    float *y = a->y + (size_t)row * (size_t)a->ldy;
    bool fixed = tec_is_fixed(a->fixed, row);
    const float *weights = fixed ? a->fixed_weight : a->weight;
    const float *biases = fixed ? a->fixed_bias : a->bias;
    for (int c = 0; c < a->cols; c++) {
        double weight = (double)a->offset + (weights ? (double)weights[c] : 0.0);
        double bias = biases ? (double)biases[c] : 0.0;
        float v = (float)(((double)x[c] - mean) * scale * weight + bias);
        y[c] = a->round ? tec_bf16_round(v) : v;
    }
}

/* As write_row, without a mean or a bias, on one head. */
static void write_head(const struct tec_head_norm_args *a, float *x)
{
    double squares = 0;
    for (int d = 0; d < a->head_dim; d++)
        squares += (double)x[d] * (double)x[d];
    double scale = 1 / sqrt(squares / a->head_dim + (double)a->eps);
    for (int d = 0; d < a->head_dim; d++) {
        double weight = (double)a->offset + (a->weight ? (double)a->weight[d] : 0.0);
        float v = (float)((double)x[d] * scale * weight);
        x[d] = a->round ? tec_bf16_round(v) : v;
    }
}

void tec_head_norm_ref(const struct tec_head_norm_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++)
        for (int h = 0; h < a->heads; h++)
            write_head(a, a->x + (size_t)r * (size_t)a->ld + a->at + (ptrdiff_t)h * a->head_dim);
}

void tec_layernorm_ref(const struct tec_norm_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->x + (size_t)r * (size_t)a->ldx;
        double sum = 0, squares = 0;
        for (int c = 0; c < a->cols; c++)
            sum += (double)x[c];
        double mean = sum / a->cols;
        for (int c = 0; c < a->cols; c++)
            squares += ((double)x[c] - mean) * ((double)x[c] - mean);
        write_row(a, r, mean, 1 / sqrt(squares / a->cols + (double)a->eps));
    }
}

void tec_rmsnorm_ref(const struct tec_norm_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->x + (size_t)r * (size_t)a->ldx;
        double squares = 0;
        for (int c = 0; c < a->cols; c++)
            squares += (double)x[c] * (double)x[c];
        write_row(a, r, 0, 1 / sqrt(squares / a->cols + (double)a->eps));
    }
}
