/* map.c - the reference elementwise kernels: activations and caps in float64 rounded once, relu,
 * copy and sums exact. */
#include "kernels/bf16.h"
#include "kernels/ref/activation.h"
#include "kernels/ref/ref.h"

static float gelu(float x)
{
    return (float)tec_gelu((double)x);
}

static float gelu_erf(float x)
{
    return (float)tec_gelu_erf((double)x);
}

static float silu(float x)
{
    return (float)tec_silu((double)x);
}

static float relu(float x)
{
    return x < 0 ? 0 : x;
}

static float same(float x)
{
    return x;
}

static void map(const struct tec_map_args *a, struct tec_part part, float (*f)(float x))
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->x + (size_t)r * (size_t)a->ldx;
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int c = 0; c < a->cols; c++)
            y[c] = a->round ? tec_bf16_round(f(x[c])) : f(x[c]);
    }
}

void tec_gelu_ref(const struct tec_map_args *a, struct tec_part part)
{
    map(a, part, gelu);
}

void tec_gelu_erf_ref(const struct tec_map_args *a, struct tec_part part)
{
    map(a, part, gelu_erf);
}

void tec_silu_ref(const struct tec_map_args *a, struct tec_part part)
{
    map(a, part, silu);
}

void tec_relu_ref(const struct tec_map_args *a, struct tec_part part)
{
    map(a, part, relu);
}

void tec_copy_rows_ref(const struct tec_map_args *a, struct tec_part part)
{
    map(a, part, same);
}

void tec_soft_cap_ref(const struct tec_soft_cap_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->x + (size_t)r * (size_t)a->ldx;
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int c = 0; c < a->cols; c++)
            y[c] = (float)((double)a->cap * tanh((double)x[c] / (double)a->cap));
    }
}

void tec_add_ref(const struct tec_add_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->x + (size_t)r * (size_t)a->ldx;
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int c = 0; c < a->cols; c++)
            y[c] += x[c];
    }
}
