/* conv.c - the reference kernel of convolutions of 3 x 3 pixels: the formula of kernels/conv.h in
 * float64, rounded once before bias and sum. */
#include "kernels/conv.h"
#include "kernels/ref/ref.h"

/* The 4 x 4 pixels of a square, NULL outside the picture. */
static void pixels_of(const struct tec_conv_args *a, int line, int column,
                      const float *d[TEC_CONV_POINTS])
{
    for (int p = 0; p < TEC_CONV_POINTS; p++) {
        int y = line - a->pad + p / TEC_CONV_SIDE, x = column - a->pad + p % TEC_CONV_SIDE;
        bool inside = y >= 0 && y < a->in_h && x >= 0 && x < a->in_w;
        size_t row = inside ? (size_t)y * (size_t)a->in_w + (size_t)x : 0;
        d[p] = inside ? a->x + row * (size_t)a->ldx : NULL;
    }
}

/* Four values, `step` apart, to four points, in place: B^T. */
static void forth(double *d, size_t step)
{
    double d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    d[0] = d0 - d2;
    d[step] = d1 + d2;
    d[2 * step] = d2 - d1;
    d[3 * step] = d1 - d3;
}

/* Four points to the first two of them, in place: A^T. */
static void back(double *m, size_t step)
{
    double both = m[step] + m[2 * step], apart = m[step] - m[2 * step];
    m[0] += both;
    m[step] = apart - m[3 * step];
}

/* The sums of a square's points in channel c of y. */
static void points_of(const struct tec_conv_args *a, const float *const d[TEC_CONV_POINTS], int c,
                      double sums[TEC_CONV_POINTS])
{
    size_t matrix = tec_matrix_size(TEC_MATRIX_ROWS, false, a->n, a->k) / sizeof(float);
    const float *w = (const float *)a->w + (size_t)c * (size_t)a->k;
    for (int p = 0; p < TEC_CONV_POINTS; p++)
        sums[p] = 0.0;
    for (int k = 0; k < a->k; k++) {
        double v[TEC_CONV_POINTS];
        for (int p = 0; p < TEC_CONV_POINTS; p++)
            v[p] = d[p] ? (double)d[p][k] : 0.0;
        for (int i = 0; i < TEC_CONV_SIDE; i++)
            forth(v + i, TEC_CONV_SIDE);
        for (size_t i = 0; i < TEC_CONV_SIDE; i++)
            forth(v + TEC_CONV_SIDE * i, 1);
        for (int p = 0; p < TEC_CONV_POINTS; p++)
            sums[p] += v[p] * (double)w[(size_t)p * matrix + (size_t)k];
    }
}

static void finish(const struct tec_conv_args *a, int r, int c, double sum)
{
    float *y = a->y + (size_t)r * (size_t)a->ldy + (size_t)c, v = (float)sum;
    if (a->bias)
        v += a->bias[c];
    *y = a->add ? *y + v : v;
}

/* Channel c of the windows of a square that exist and are live. */
static void square(const struct tec_conv_args *a, int line, int column, int live, int c)
{
    const float *d[TEC_CONV_POINTS];
    double m[TEC_CONV_POINTS];
    pixels_of(a, line, column, d);
    points_of(a, d, c, m);
    for (int i = 0; i < TEC_CONV_SIDE; i++)
        back(m + i, TEC_CONV_SIDE);
    for (size_t i = 0; i < 2; i++)
        back(m + TEC_CONV_SIDE * i, 1);
    for (int i = 0; i < 4; i++) {
        int r = (line + i / 2) * a->out_w + column + i % 2;
        if (column + i % 2 < a->out_w && r < live)
            finish(a, r, c, m[i / 2 * TEC_CONV_SIDE + i % 2]);
    }
}

void tec_conv3x3_ref(const struct tec_conv_args *a, struct tec_part part)
{
    int live = tec_live(a->rows, a->max_rows), lines = (live + a->out_w - 1) / a->out_w;
    struct tec_range own = tec_share(part, tec_conv_squares(lines), 1);
    for (int i = own.first; i < own.last; i++)
        for (int j = 0; j < a->out_w; j += 2)
            for (int c = 0; c < a->n; c++)
                square(a, 2 * i, j, live, c);
}
