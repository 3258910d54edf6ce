/* check_norm.c - checks the RMS, layer and head norms of every tier against long double, within
 * bounds derived for float64 and for float32 sums. */
#include "tests/kernels/conform.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
    int rows, cols;
};

/* Sizes at the edges of vectors; then the rows of real models. */
static const struct shape edges[] = {
    {1, 1},  {3, 7},   {2, 8},    {5, 9},     {4, 15},   {3, 16},    {7, 17},     {2, 31},
    {2, 33}, {11, 64}, {2, 4500}, {51, 1024}, {5, 1152}, {20, 2048}, {256, 1152}, {968, 2048}};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 40 };

/* The formula in long double for one row, with its largest element and its largest distance from
 * the mean. */
struct exact {
    long double mean, scale, spread, far;
};

static struct exact statistics(const struct tec_norm_args *a, const float *x, bool centred)
{
    struct exact e = {0, 0, 0, 0};
    for (int c = 0; c < a->cols; c++) {
        e.mean += centred ? (long double)x[c] / a->cols : 0;
        e.spread = fmaxl(e.spread, fabsl((long double)x[c]));
    }
    long double squares = 0;
    for (int c = 0; c < a->cols; c++) {
        squares += ((long double)x[c] - e.mean) * ((long double)x[c] - e.mean);
        e.far = fmaxl(e.far, fabsl((long double)x[c] - e.mean));
    }
    e.scale = 1 / sqrtl(squares / a->cols + (long double)a->eps);
    return e;
}

/* What float64 sums of `cols` terms may cost an element (before its last rounding) whose distance
 * from the mean is v: each of the sums is off by cols 2^-53 of its absolute terms; then five
 * operations in float64. */
static long double double_sums(const struct exact *e, int cols, long double v, long double weight,
                               long double bias)
{
    long double sums = (cols + 8) * (long double)DBL_EPSILON;
    long double size = (fabsl(v) + e->spread) * e->scale * fabsl(weight) + fabsl(bias);
    return sums * size * (1 + e->scale * e->spread * sums);
}

/* The same for the sums of kernels/cuda/norm.cu in float32, u = 2^-24. A sum passes at most `path`
 * roundings: a thread's columns, 5 levels of lanes, 8 warps, the term and the division; squares by
 * panels pass fewer. The first
 * mean is off by path u of the largest element; the mean distance from it, and each distance, by
 * path + 3 u of the largest distance: `off`. The variance is off by that and by its own sum; its
 * root has half of the error. Scale, weight and product round once or twice each. */
static long double float_sums(const struct exact *e, int cols, bool centred, long double v,
                              long double weight)
{
    int quads = (cols + 1023) / 1024;
    long double u = ldexpl(1, -24), path = 4 * quads + 15, off = 0;
    if (centred)
        off = (path + 3) * u * (e->far + path * u * e->spread) + ldexpl(1, -147);
    long double spread = off * e->scale;
    long double scale = spread + spread * spread + (path / 2 + 3) * u;
    return (fabsl(v) * scale + off * (1 + scale)) * e->scale * fabsl(weight) +
           2 * u * fabsl(v) * e->scale * fabsl(weight) + ldexpl(1 + fabsl(weight), -149);
}

/* The bound of an element of value `want` after its last roundings. */
static long double rounded(const struct tec_norm_args *a, long double bound, long double want)
{
    bound += (long double)FLT_EPSILON / 2 * (fabsl(want) + bound) + ldexpl(1, -149);
    if (a->round)
        bound += ldexpl(fabsl(want) + bound, -8) + ldexpl(1, -133);
    return bound;
}

static void compare_row(struct conform *c, const struct tec_norm_args *a, const float *x, int row,
                        bool centred)
{
    struct exact e = statistics(a, x + (size_t)row * (size_t)a->ldx, centred);
    bool fixed = a->fixed && row < *a->fixed;
    const float *weights = fixed ? a->fixed_weight : a->weight;
    const float *biases = fixed ? a->fixed_bias : a->bias;
    for (int i = 0; i < a->cols; i++) {
        long double weight = (long double)a->offset + (weights ? (long double)weights[i] : 0);
        long double bias = biases ? (long double)biases[i] : 0;
        long double v = (long double)x[(size_t)row * (size_t)a->ldx + (size_t)i] - e.mean;
        long double want = v * e.scale * weight + bias;
        long double bound = double_sums(&e, a->cols, v, weight, bias), limit = bound;
        if (!c->same_order)
            limit = float_sums(&e, a->cols, centred, v, weight);
        bound = rounded(a, bound, want);
        limit = rounded(a, limit, want);
        size_t at = (size_t)row * (size_t)a->ldy + (size_t)i;
        conform_close(c, (double)((const float *)c->got[0])[at], (double)want, (double)limit,
                      "[%dx%d] row %d column %d", a->max_rows, a->cols, row, i);
        conform_close(c, (double)((const float *)c->want[0])[at], (double)want, (double)bound,
                      "reference [%dx%d] row %d column %d", a->max_rows, a->cols, row, i);
    }
}

/* Give no, one, some or all rows fixed vectors, and counts that no plan makes. */
static void give_fixed(struct conform *c, struct tec_norm_args *a)
{
    const int counts[] = {0, 1, conform_int(0, a->max_rows), a->max_rows, a->max_rows + 9, -3};
    float *weight = conform_buf(c, (size_t)a->cols, sizeof *weight);
    float *bias = conform_buf(c, (size_t)a->cols, sizeof *bias);
    conform_fill(weight, (size_t)a->cols, CONFORM_NORMAL, 1.0F);
    conform_fill(bias, (size_t)a->cols, CONFORM_NORMAL, 1.0F);
    a->fixed = conform_ints(c, 1, counts[conform_int(0, 5)]);
    a->fixed_weight = conform_int(0, 3) ? weight : NULL;
    a->fixed_bias = conform_int(0, 1) ? bias : NULL;
}

static void norm_shape(struct conform *c, struct shape s, bool centred, enum conform_family family)
{
    size_t rows = (size_t)s.rows, cols = (size_t)s.cols;
    struct tec_norm_args a = {.max_rows = s.rows, .cols = s.cols, .eps = 1e-6F};
    a.ldx = conform_ld(s.cols);
    a.ldy = conform_ld(s.cols);
    a.offset = (float)conform_int(0, 1);
    a.round = conform_int(0, 1);
    float *x = conform_buf(c, rows * (size_t)a.ldx, sizeof *x);
    for (size_t r = 0; r < rows; r++)
        conform_fill(x + r * (size_t)a.ldx, cols, family, conform_int(0, 1) ? 1.0F : 300.0F);
    float *weight = conform_buf(c, cols, sizeof *weight);
    float *bias = conform_buf(c, cols, sizeof *bias);
    conform_fill(weight, cols, CONFORM_NORMAL, 1.0F);
    conform_fill(bias, cols, CONFORM_NORMAL, 1.0F);
    a.x = x;
    a.weight = conform_int(0, 3) ? weight : NULL;
    a.bias = conform_int(0, 1) ? bias : NULL;
    a.y = conform_buf(c, rows * (size_t)a.ldy, sizeof *a.y);
    a.rows = conform_live(c, s.rows);
    if (conform_int(0, 1))
        give_fixed(c, &a);
    struct conform_call call = {.ref = &a, .fast = &a, .live = s.rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a.y, s.rows, cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < s.rows; r += 1 + s.rows / 32)
        compare_row(c, &a, x, r, centred);
    if (a.round)
        conform_rounded(c, s.rows, a.ldy, s.cols);
    if (s.cols >= 1024) {
        char name[40];
        snprintf(name, sizeof name, "%dx%d", s.rows, s.cols);
        conform_time(c, name, &call, 8.0 * s.rows * s.cols, 0);
    }
    conform_end(c);
}

/* x and y may be the same buffer. */
static void norm_in_place(struct conform *c, bool centred)
{
    enum { ROWS = 6, COLS = 50, LD = 64 };
    float *x = conform_buf(c, (size_t)ROWS * LD, sizeof *x);
    float *before = conform_buf(c, (size_t)ROWS * LD, sizeof *before);
    conform_fill(x, (size_t)ROWS * LD, CONFORM_NORMAL, 2.0F);
    for (int i = 0; i < ROWS * LD; i++)
        before[i] = x[i];
    struct tec_norm_args a = {.x = x,
                              .y = x,
                              .rows = conform_live(c, ROWS),
                              .max_rows = ROWS,
                              .ldx = LD,
                              .ldy = LD,
                              .cols = COLS,
                              .offset = 1,
                              .eps = 1e-5F};
    struct conform_call call = {.ref = &a, .fast = &a, .live = ROWS, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){x, ROWS, (size_t)COLS * 4, (size_t)LD * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < ROWS; r++)
        compare_row(c, &a, before, r, centred);
    conform_end(c);
}

/* A row has the bytes of the plain kernel with its own vectors, whatever the count is. */
static void norm_fixed(struct conform *c, const struct tec_kernels *table, bool centred)
{
    enum { ROWS = 7, COLS = 45, LD = 48 };
    int *rows = conform_ints(c, 1, ROWS), *fixed = conform_ints(c, 1, 0);
    float *x = conform_buf(c, (size_t)ROWS * LD, sizeof *x), *vector[4], *y[3];
    conform_fill(x, (size_t)ROWS * LD, CONFORM_NORMAL, 2.0F);
    for (int i = 0; i < 4; i++) {
        vector[i] = conform_buf(c, COLS, sizeof(float));
        conform_fill(vector[i], COLS, CONFORM_NORMAL, 1.0F);
    }
    struct tec_norm_args a[3];
    for (int i = 0; i < 3; i++) {
        y[i] = conform_buf(c, (size_t)ROWS * LD, sizeof(float));
        a[i] = (struct tec_norm_args){.x = x,
                                      .y = y[i],
                                      .weight = vector[i == 1 ? 2 : 0],
                                      .bias = vector[i == 1 ? 3 : 1],
                                      .rows = rows,
                                      .max_rows = ROWS,
                                      .ldx = LD,
                                      .ldy = LD,
                                      .cols = COLS,
                                      .offset = 1,
                                      .eps = 1e-6F};
    }
    a[2].fixed = fixed;
    a[2].fixed_weight = vector[2];
    a[2].fixed_bias = vector[3];
    for (*fixed = 0; *fixed <= ROWS; ++*fixed) {
        for (int i = 0; i < 3; i++)
            (centred ? table->layernorm : table->rmsnorm)(&a[i], (struct tec_part){0, 1});
        for (int r = 0; r < ROWS; r++)
            if (memcmp(y[2] + r * LD, y[r < *fixed] + r * LD, COLS * sizeof(float)) != 0)
                conform_fail(c, "%d fixed: row %d is not that of the plain kernel", *fixed, r);
    }
    conform_end(c);
}

static void norm(struct conform *c, bool centred)
{
    norm_fixed(c, c->ref, centred);
    norm_fixed(c, c->fast, centred);
    for (int i = 0; i < EDGES; i++)
        norm_shape(c, (struct shape){conform_scale(c, edges[i].rows, 64), edges[i].cols}, centred,
                   CONFORM_NORMAL);
    for (int i = 0; i < conform_few(c, RANDOM); i++)
        norm_shape(c, (struct shape){conform_int(1, 20), conform_int(1, 300)}, centred,
                   (enum conform_family)(i % CONFORM_FAMILIES));
    norm_in_place(c, centred);
}

void conform_layernorm(struct conform *c)
{
    norm(c, true);
}

void conform_rmsnorm(struct conform *c)
{
    norm(c, false);
}

/* A head of head_norm as a row of rmsnorm, for the formula and its bounds. */
static struct tec_norm_args as_rows(const struct tec_head_norm_args *a)
{
    return (struct tec_norm_args){.weight = a->weight,
                                  .max_rows = a->max_rows,
                                  .ldx = a->head_dim,
                                  .ldy = a->head_dim,
                                  .cols = a->head_dim,
                                  .offset = a->offset,
                                  .eps = a->eps,
                                  .round = a->round};
}

/* Every head of a row, from its values before; what stands beside the heads is left alone. */
static void compare_heads(struct conform *c, const struct tec_head_norm_args *a,
                          const float *before, int row)
{
    struct tec_norm_args head = as_rows(a);
    for (int h = 0; h < a->heads; h++) {
        size_t at = (size_t)row * (size_t)a->ld + (size_t)(a->at + h * a->head_dim);
        struct exact e = statistics(&head, before + at, false);
        for (int d = 0; d < a->head_dim; d++) {
            long double weight = (long double)a->offset;
            weight += a->weight ? (long double)a->weight[d] : 0;
            long double v = (long double)before[at + (size_t)d], want = v * e.scale * weight;
            long double bound = double_sums(&e, a->head_dim, v, weight, 0), limit = bound;
            if (!c->same_order)
                limit = float_sums(&e, a->head_dim, false, v, weight);
            conform_close(c, (double)((const float *)c->got[0])[at + (size_t)d], (double)want,
                          (double)rounded(&head, limit, want), "row %d head %d d %d", row, h, d);
            conform_close(c, (double)((const float *)c->want[0])[at + (size_t)d], (double)want,
                          (double)rounded(&head, bound, want), "reference row %d head %d d %d", row,
                          h, d);
        }
    }
}

static void head_norm_shape(struct conform *c, int rows, int heads, int dim,
                            enum conform_family family)
{
    struct tec_head_norm_args a = {
        .max_rows = rows, .heads = heads, .head_dim = dim, .eps = 1e-6F, .at = conform_int(0, 9)};
    a.ld = conform_ld(a.at + heads * dim + conform_int(0, 20));
    a.offset = (float)conform_int(0, 1);
    a.round = conform_int(0, 1);
    size_t count = (size_t)rows * (size_t)a.ld;
    float *before = conform_buf(c, count, sizeof *before);
    float *weight = conform_buf(c, (size_t)dim, sizeof *weight);
    conform_fill(before, count, family, conform_int(0, 1) ? 1.0F : 300.0F);
    conform_fill(weight, (size_t)dim, CONFORM_NORMAL, 1.0F);
    a.x = conform_buf(c, count, sizeof *a.x);
    memcpy(a.x, before, count * sizeof *a.x);
    a.weight = conform_int(0, 3) ? weight : NULL;
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = false, .outs = 1};
    call.out[0] = (struct conform_out){
        a.x, rows, (size_t)(a.at + heads * dim) * 4, (size_t)a.ld * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < rows; r += 1 + rows / 16) {
        compare_heads(c, &a, before, r);
        if (memcmp((const float *)c->got[0] + (size_t)r * (size_t)a.ld,
                   before + (size_t)r * (size_t)a.ld, (size_t)a.at * sizeof *before) != 0)
            conform_fail(c, "row %d changed in front of its heads", r);
    }
    conform_end(c);
}

void conform_head_norm(struct conform *c)
{
    static const int heads[][3] = {{1, 1, 1},   {3, 2, 7},    {2, 9, 8},     {5, 4, 20},
                                   {7, 3, 33},  {1, 16, 128}, {40, 4, 256},  {2, 1, 300},
                                   {64, 8, 64}, {9, 40, 72},  {532, 8, 128}, {8, 4, 256}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        head_norm_shape(c, conform_scale(c, heads[i][0], 64), heads[i][1], heads[i][2],
                        CONFORM_NORMAL);
    for (int i = 0; i < conform_few(c, RANDOM); i++)
        head_norm_shape(c, conform_int(1, 20), conform_int(1, 12), conform_int(1, 140),
                        (enum conform_family)(i % CONFORM_FAMILIES));
}
