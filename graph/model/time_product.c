/* time_product.c - layers of a flow's time, in float64 while a model is loaded. */
#include "graph/model/time_product.h"

#include <math.h>

/* Lines that are read at a time; times whose sums are made side by side. */
enum { LINES = 64, TOGETHER = 8 };

/* Each sum runs over the line alone: how many times there are does not change it. */
static void multiply_row(const struct tec_time_product *p, int row, const float *line)
{
    size_t n = (size_t)p->n, rows = (size_t)p->layer.rows;
    for (int s = 0; s < p->steps; s += TOGETHER) {
        const double *x[TOGETHER];
        double sum[TOGETHER] = {0.0};
        for (int k = 0; k < TOGETHER; k++) /* beyond the last one it is that again, and unused */
            x[k] = p->x + (size_t)(s + k < p->steps ? s + k : p->steps - 1) * n;
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < TOGETHER; k++)
                sum[k] += (double)line[i] * x[k][i];
        for (int k = 0; k < TOGETHER && s + k < p->steps; k++)
            p->y[(size_t)(s + k) * rows + (size_t)row] = sum[k];
    }
}

/* Stored [out, in]. */
static enum tec_status multiply_rows(const struct tec_weight_source *source,
                                     const struct tec_time_product *p, float *lines,
                                     struct tec_error *err)
{
    struct tec_expected e = {.names = {p->layer.weight},
                             .n_names = 1,
                             .rank = 2,
                             .shape = {p->layer.rows, p->layer.cols}};
    struct tec_found found = {0};
    TEC_TRY(tec_weight_find(source, &e, &found, err));
    for (int first = 0; first < p->layer.rows; first += LINES) {
        int left = p->layer.rows - first, n = left < LINES ? left : LINES;
        TEC_TRY(tec_weight_rows(source, &found, first, n, lines, err));
        for (int r = 0; r < n; r++)
            multiply_row(p, first + r, lines + (size_t)r * (size_t)p->layer.cols + p->first);
    }
    return TEC_OK;
}

/* Stored [in, out]. */
static enum tec_status multiply_columns(const struct tec_weight_source *source,
                                        const struct tec_time_product *p, float *line,
                                        struct tec_error *err)
{
    struct tec_found found = {0};
    size_t rows = (size_t)p->layer.rows;
    TEC_TRY(tec_weight_category(source, &p->layer, p->category, &found, err));
    for (int i = 0; i < p->n; i++) {
        TEC_TRY(tec_weight_rows(source, &found, p->first + i, 1, line, err));
        for (int s = 0; s < p->steps; s++)
            for (size_t r = 0; r < rows; r++)
                p->y[(size_t)s * rows + r] +=
                    (double)line[r] * p->x[(size_t)s * (size_t)p->n + (size_t)i];
    }
    return TEC_OK;
}

enum tec_status tec_time_multiply(const struct tec_weight_source *source,
                                  const struct tec_time_product *p, struct tec_heap *heap,
                                  struct tec_error *err)
{
    const struct tec_dense *d = &p->layer;
    bool categories = p->category.categories > 0;
    size_t rows = (size_t)d->rows, n = categories ? rows : LINES * (size_t)d->cols;
    float *line = tec_heap_get(heap, (n + rows) * sizeof *line);
    if (!line)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for rows of '%s'", d->weight);
    float *bias = line + n;
    enum tec_status status = categories
                                 ? tec_weight_category_bias(source, d, p->category, bias, err)
                                 : tec_weight_vector(source, d->bias, d->rows, 0.0F, bias, err);
    if (status == TEC_OK)
        status = categories ? multiply_columns(source, p, line, err)
                            : multiply_rows(source, p, line, err);
    for (size_t i = 0; i < (size_t)p->steps * rows && status == TEC_OK; i++)
        p->y[i] += (double)bias[i % rows];
    tec_heap_put(heap, line);
    return status;
}

static double gelu(double x)
{
    const double share = 0.79788456080286535588; /* sqrt(2 / pi) */
    return 0.5 * x * (1.0 + tanh(share * (x + 0.044715 * x * x * x)));
}

static double gelu_erf(double x)
{
    return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
}

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double relu(double x)
{
    return x > 0.0 ? x : 0.0;
}

static double (*const activations[])(double x) = {[TEC_ACTIVATION_GELU] = gelu,
                                                  [TEC_ACTIVATION_GELU_ERF] = gelu_erf,
                                                  [TEC_ACTIVATION_SILU] = silu,
                                                  [TEC_ACTIVATION_RELU] = relu};

double tec_time_activation(enum tec_activation f, double x)
{
    return activations[f](x);
}
