/* check_conv.c - checks convolutions by squares of windows: every tier, and the reference, against
 * the plain sum over windows in float64. */
#include "kernels/conv.h"
#include "tests/kernels/conform.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
    int h, w, k, n, pad;
};

/* One convolution: weights [n, 3, 3, k] as they are, and y before it. */
struct conv_case {
    struct tec_conv_args a;
    const float *g, *before;
};

static float pixel(const struct tec_conv_args *a, int y, int x, int c)
{
    bool inside = y >= 0 && y < a->in_h && x >= 0 && x < a->in_w;
    return inside ? a->x[((size_t)y * (size_t)a->in_w + (size_t)x) * (size_t)a->ldx + (size_t)c]
                  : 0.0F;
}

static const float *weights_of(const struct conv_case *t, int c, int k)
{
    return t->g + (size_t)c * 9 * (size_t)t->a.k + (size_t)k;
}

/* The sum over a window, in float64. */
static double exact(const struct conv_case *t, int r, int c)
{
    const struct tec_conv_args *a = &t->a;
    double sum = 0.0;
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < a->k; k++)
            sum +=
                (double)pixel(a, r / a->out_w - a->pad + i / 3, r % a->out_w - a->pad + i % 3, k) *
                (double)weights_of(t, c, k)[i * a->k];
    return sum;
}

/* The sizes of what a window's sum is made of: a matrix of four lines, each value at most what the
 * rows of `by` [4, n] make of the sizes of d [n, n]. */
static void sizes_of(const double by[4][4], int n, const double *d, double *out)
{
    double half[4][4] = {{0}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < n; j++)
            for (int m = 0; m < n; m++)
                half[i][j] += by[i][m] * fabs(d[m * n + j]);
    for (int p = 0; p < 16; p++) {
        out[p] = 0.0;
        for (int m = 0; m < n; m++)
            out[p] += by[p % 4][m] * half[p / 4][m];
    }
}

/* The sum of all |pixel| |weight| at the points that window r reads of its square. */
static double size_of(const struct conv_case *t, int r, int c)
{
    static const double pixels[4][4] = {{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}};
    static const double weights[4][4] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0, 0, 1}};
    const struct tec_conv_args *a = &t->a;
    int line = r / a->out_w, column = r % a->out_w;
    int top = line / 2 * 2 - a->pad, left = column / 2 * 2 - a->pad;
    double sum = 0.0;
    for (int k = 0; k < a->k; k++) {
        double d[16], g[9], v[16], u[16];
        for (int p = 0; p < 16; p++)
            d[p] = (double)pixel(a, top + p / 4, left + p % 4, k);
        for (int i = 0; i < 9; i++)
            g[i] = (double)weights_of(t, c, k)[i * a->k];
        sizes_of(pixels, 4, d, v);
        sizes_of(weights, 3, g, u);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                int p = (i + line % 2) * 4 + j + column % 2;
                sum += v[p] * u[p];
            }
    }
    return sum;
}

/* Each product of a point takes part in so many roundings of 2^-24: of its weight, two of its
 * pixels, in a chain of 32 k and in the sum of chains, four on the way back. The reference
 * rounds the weight and the result alone. Then bias and add are rounded once each. */
static double bound_of(const struct conv_case *t, int r, int c, double want, bool chains)
{
    enum { CHAIN = 32 };
    int k = t->a.k, steps = (k < CHAIN ? k : CHAIN) + (k - 1) / CHAIN + 1;
    double half = (double)FLT_EPSILON / 2.0, size = size_of(t, r, c);
    double bias = t->a.bias ? fabs((double)t->a.bias[c]) : 0.0;
    return half * size * 1.001 * (1 + (chains ? 2 + steps + 4 : 0)) +
           4.0 * half * (size + bias + fabs(want)) + 9 * (k + 4) * ldexp(1.0, -149);
}

static void compare(struct conform *c, const struct conv_case *t, int r, int col)
{
    const struct tec_conv_args *a = &t->a;
    size_t at = (size_t)r * (size_t)a->ldy + (size_t)col;
    double want = exact(t, r, col) + (a->bias ? (double)a->bias[col] : 0.0) +
                  (a->add ? (double)t->before[at] : 0.0);
    bool chains = c->fast->conv3x3 != c->ref->conv3x3;
    conform_close(c, (double)((const float *)c->got[0])[at], want,
                  bound_of(t, r, col, want, chains), "[%dx%dx%d] to %d: window %d column %d",
                  a->in_h, a->in_w, a->k, a->n, r, col);
    conform_close(
        c, (double)((const float *)c->want[0])[at], want, bound_of(t, r, col, want, false),
        "reference [%dx%dx%d] to %d: window %d column %d", a->in_h, a->in_w, a->k, a->n, r, col);
}

static const void *packed(struct conform *c, const struct tec_kernels *table,
                          const struct conv_case *t)
{
    size_t size = tec_conv_size(table->layout, t->a.n, t->a.k);
    float *room = conform_buf(c, (size_t)t->a.n * (size_t)t->a.k, sizeof *room);
    void *w = conform_buf(c, size, 1);
    memset(w, 0, size);
    tec_conv_pack(w, table->layout, t->a.n, t->a.k, t->g, NULL, room);
    return w;
}

static struct conv_case make(struct conform *c, struct shape s, enum conform_family family)
{
    struct tec_conv_args a = {.ldx = conform_ld(s.k),
                              .ldy = conform_ld(s.n),
                              .in_h = s.h,
                              .in_w = s.w,
                              .out_w = s.w + 2 * s.pad - 2,
                              .pad = s.pad,
                              .n = s.n,
                              .k = s.k,
                              .add = conform_int(0, 1)};
    a.max_rows = (s.h + 2 * s.pad - 2) * a.out_w;
    size_t pixels = (size_t)s.h * (size_t)s.w, results = (size_t)a.max_rows * (size_t)a.ldy;
    float *x = conform_buf(c, pixels * (size_t)a.ldx, sizeof *x); /* NaN beyond k */
    for (size_t r = 0; r < pixels; r++)
        conform_fill(x + r * (size_t)a.ldx, (size_t)s.k, family, 1.0F);
    a.x = x;
    a.bias = conform_int(0, 1) ? conform_normal(c, (size_t)s.n) : NULL;
    a.y = conform_buf(c, results, sizeof *a.y);
    if (a.add)
        conform_fill(a.y, results, CONFORM_NORMAL, 1.0F);
    a.rows = conform_live(c, a.max_rows);
    float *before = conform_buf(c, results, sizeof *before);
    for (size_t i = 0; i < results; i++)
        before[i] = a.y[i];
    return (struct conv_case){a, conform_normal(c, (size_t)s.n * 9 * (size_t)s.k), before};
}

/* A GPU's results have the bytes of the vector tiers. */
static void compare_vector(struct conform *c, const struct conv_case *t)
{
    struct tec_kernels vector;
    struct tec_conv_args a = t->a;
    if (!conform_vector(c, &vector))
        return;
    size_t size = (size_t)a.max_rows * (size_t)a.ldy;
    a.w = packed(c, &vector, t);
    a.y = conform_buf(c, size, sizeof *a.y);
    for (size_t i = 0; i < size; i++)
        a.y[i] = t->before[i];
    vector.conv3x3(&a, (struct tec_part){0, 1});
    conform_rows(c, a.y, a.max_rows, a.n, a.ldy);
}

static void conv_shape(struct conform *c, struct shape s, enum conform_family family)
{
    enum { SOME = 300 };
    struct conv_case t = make(c, s, family);
    struct tec_conv_args ref = t.a, fast = t.a;
    int rows = t.a.max_rows;
    ref.w = packed(c, c->ref, &t);
    fast.w = packed(c, c->fast, &t);
    struct conform_call call = {.ref = &ref, .fast = &fast, .live = rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){
        t.a.y, rows, (size_t)s.n * sizeof(float), (size_t)t.a.ldy * sizeof(float), NULL, 0, 1};
    conform_run(c, &call);
    *c->live = rows;
    for (int i = 0; i < rows * s.n && rows * s.n <= SOME; i++)
        compare(c, &t, i / s.n, i % s.n);
    for (int i = 0; i < SOME && rows * s.n > SOME; i++)
        compare(c, &t, conform_int(0, rows - 1), conform_int(0, s.n - 1));
    compare_vector(c, &t);
    if (s.h >= 15 && s.k >= 64 && c->bench) {
        char name[60];
        snprintf(name, sizeof name, "%dx%dx%d to %d", s.h, s.w, s.k, s.n);
        conform_time(c, name, &call, 4.0 * rows * (s.n + s.k), 18.0 * rows * s.k * s.n);
    }
    conform_end(c);
}

void conform_conv3x3(struct conform *c)
{
    static const struct shape edges[] = {
        {1, 1, 1, 16, 1},    {1, 3, 5, 16, 1},  {2, 2, 16, 32, 1},  {3, 3, 17, 16, 0},
        {5, 4, 33, 48, 1},   {3, 4, 64, 64, 1}, {4, 7, 129, 16, 2}, {13, 12, 16, 16, 1},
        {7, 23, 20, 144, 1}, {6, 5, 257, 32, 1}};
    static const struct shape layers[] = {
        {120, 160, 64, 64, 1}, {60, 80, 128, 128, 1}, {30, 40, 256, 256, 1}, {15, 20, 512, 512, 1}};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        conv_shape(c, edges[i], CONFORM_NORMAL);
    for (int i = 0; i < conform_few(c, 30); i++) {
        struct shape s = {.h = conform_int(1, 9),
                          .w = conform_int(1, conform_int(1, 40)),
                          .k = conform_int(1, conform_int(1, 200)),
                          .n = 16 * conform_int(1, conform_int(1, 12)),
                          .pad = conform_int(1, 2)};
        s.n = conform_scale(c, s.n, 64);
        s.k = conform_scale(c, s.k, 64);
        conv_shape(c, s, (enum conform_family)(i % CONFORM_FAMILIES));
    }
    for (size_t i = 0; c->bench && i < sizeof layers / sizeof layers[0]; i++)
        conv_shape(c, layers[i], CONFORM_NORMAL);
}
