/* check_terms.c - checks products whose x may be read as bf16 terms: every tier within a bound from
 * its arithmetic, tile units, dot products of pairs and products of matrices (emulated ones on
 * every machine) within the bound of theirs. */
#include "kernels/avx512/avx512.h"
#include "kernels/bf16.h"
#include "kernels/neon/neon.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/matrices_tier.h"
#include "tests/kernels/pairs_tier.h"
#include "tests/kernels/tiles_tier.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Sizes at the edges of tiles, pairs of them, blocks of rows, groups of panels, and of the room for
 * terms. */
static const struct {
    int rows, live, n, k;
} edges[] = {{1, 1, 16, 1},       {1, 1, 32, 2},     {2, 1, 48, 31},      {15, 15, 16, 32},
             {16, 16, 32, 33},    {17, 17, 48, 63},  {31, 30, 16, 64},    {32, 32, 64, 65},
             {33, 33, 48, 96},    {64, 63, 32, 127}, {129, 129, 16, 300}, {140, 131, 32, 47},
             {260, 257, 16, 7},   {1, 1, 528, 2051}, {3, 3, 560, 40},     {17, 17, 32, 2100},
             {128, 128, 48, 513}, {14, 14, 800, 34}, {2, 2, 16, 16387},   {40, 40, 560, 700},
             {41, 40, 544, 697},  {96, 96, 80, 290}};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 12 };

/* For a processor's own tile unit, whose blocks and pieces are as large as its caches: more rows
 * than a block, all of k at once and in two pieces, with more panels than a group. */
static const struct {
    int rows, n, k;
} large[] = {{300, 48, 77}, {289, 1056, 2100}, {160, 32, 2080}, {530, 1040, 64}};
enum { LARGE = sizeof large / sizeof large[0] };

/* What the sum of one element is made of: of its products, of what flushing may take, and of what
 * two terms leave out of the smallest x, half of the least bf16. */
struct terms_size {
    double sum, flushed, least;
};

bool conform_has_tiles(const struct tec_kernels *table)
{
#if defined(__x86_64__)
    return table->gemm_bf16 == tec_tiles_gemm_bf16_avx512;
#else
    (void)table;
    return false;
#endif
}

bool conform_has_pairs(const struct tec_kernels *table)
{
#if defined(__x86_64__)
    return table->gemm_bf16 == tec_pairs_gemm_bf16_avx512;
#else
    (void)table;
    return false;
#endif
}

bool conform_has_matrices(const struct tec_kernels *table)
{
#if defined(__aarch64__)
    return table->gemm_bf16 == tec_gemm_bf16_mm_neon;
#else
    (void)table;
    return false;
#endif
}

static struct terms_size size_of(const struct tec_gemm_args *a, const float *w, int r, int col)
{
    struct terms_size s = {0.0, 0.0, 0.0};
    const float *x = a->x + (size_t)r * (size_t)a->ldx, *row = w + (size_t)col * (size_t)a->k;
    for (int i = 0; i < a->k; i++) {
        s.sum += fabs((double)x[i] * (double)row[i]);
        s.least += ldexp(fabs((double)row[i]), -134);
        s.flushed += 2.0 + 2.0 * fabs((double)row[i]) + fabs((double)x[i]);
    }
    double gate = a->gate ? fabs((double)a->gate[col]) : 1.0;
    s.sum *= gate;
    s.least *= gate;
    s.flushed = gate * ldexp(s.flushed + 4.0 * ceil(a->k / 32.0), -126);
    return s;
}

/* The bound for one element. The reference rounds each product and each step of a chain of k, at
 * 2^-24, and so does who sums in its order, but keeps all of x, of which two terms leave out 2^-17.
 * A tile unit has chains of 16 products whose sums are added to each other, then to the sum, one
 * for each term and 32 k; terms of different signs are together up to 1.01 times as large as x.
 * What is below the normal range is flushed, as it is by dot products of pairs, which otherwise
 * sum as the reference does, and by products of matrices: of those each product is part of a sum of
 * two and of at most (k + 1) / 2 sums, each rounded to odd, so less than 2^-23 off. CUDA: 16
 * products and the sum so far, cut at 2^-23 of the largest, for each term and 16 k, or 8 where
 * products are in groups. Bias, gate, add and the last store then round once each. */
static double bound_of(const struct conform *c, const struct tec_gemm_args *a, struct terms_size s,
                       int col, double want)
{
    double half = (double)FLT_EPSILON / 2.0, blocks = ceil(a->k / 32.0);
    double bias =
        a->bias ? fabs((double)a->bias[col]) * (a->gate ? fabs((double)a->gate[col]) : 1.0) : 0.0;
    double rest = 8.0 * half * (s.sum + bias + fabs(want)) + (a->k + 4) * ldexp(1.0, -149);
    double steps = a->k + 1.0; /* the reference's */
    if (c->tiles)
        return 1.01 * s.sum * half * (steps + 17.0 + 2.0 * blocks) + s.flushed + rest;
    if (c->matrices && a->rounded)
        return 1.01 * s.sum * half * (steps + a->k + 3.0) + s.flushed + rest;
    if (c->same_order)
        return 1.01 * s.sum * (half * (steps + a->k) + ldexp(1.0, -17)) + s.least + rest +
               (c->pairs ? s.flushed : 0.0);
    return s.sum * (half * (steps + 4.0 * 34.0 * blocks) + ldexp(1.0, -17)) + s.least + 5.0 * rest;
}

/* One element of the reference against its own terms in float64. */
static void check_reference(struct conform *c, const struct tec_gemm_args *a, const float *w,
                            const float *before, int r, int col)
{
    double sum = 0.0;
    size_t at = (size_t)r * (size_t)a->ldy + (size_t)col;
    for (int i = 0; i < a->k; i++) {
        float x = a->x[(size_t)r * (size_t)a->ldx + (size_t)i], near = tec_bf16_round(x);
        double terms = (double)near;
        if (a->terms == 2)
            terms += (double)tec_bf16_round(x - near);
        sum += terms * (double)w[(size_t)col * (size_t)a->k + (size_t)i];
    }
    double bias = a->bias ? (double)a->bias[col] : 0.0, gate = a->gate ? (double)a->gate[col] : 1.0;
    double want = gate * (sum + bias) + (a->add ? (double)before[at] : 0.0);
    struct terms_size s = size_of(a, w, r, col);
    double half = (double)FLT_EPSILON / 2.0, rest = s.sum + fabs(gate * bias) + fabs(want);
    conform_close(c, (double)((const float *)c->want[0])[at], want,
                  half * (1.01 * s.sum * (a->k + 1.0) + 8.0 * rest) + (a->k + 4) * ldexp(1.0, -149),
                  "reference [%dx%dx%d] row %d column %d", a->max_rows, a->n, a->k, r, col);
}

static void compare(struct conform *c, const struct tec_gemm_args *a, const float *w,
                    const float *before)
{
    const float *got = c->got[0], *want = c->want[0];
    for (int r = 0; r < *a->rows; r++)
        for (int col = 0; col < a->n; col++) {
            size_t at = (size_t)r * (size_t)a->ldy + (size_t)col;
            struct terms_size s = size_of(a, w, r, col);
            conform_close(c, (double)got[at], (double)want[at],
                          bound_of(c, a, s, col, (double)want[at]),
                          "terms [%dx%dx%d] live %d row %d column %d", a->max_rows, a->n, a->k,
                          *a->rows, r, col);
            if (conform_int(0, 20) == 0)
                check_reference(c, a, w, before, r, col);
        }
}

/* x as two terms, or of one, which it then holds. */
static void terms_shape(struct conform *c, int max_rows, int live, int n, int k, int terms,
                        enum conform_family family)
{
    size_t rows = (size_t)max_rows;
    struct tec_gemm_args a = {.max_rows = max_rows, .n = n, .k = k};
    a.ldx = conform_ld(k);
    a.ldy = conform_ld(n);
    a.add = conform_int(0, 1);
    a.terms = terms == 2 ? 2 : 0;
    a.rounded = terms == 1;
    float *x = conform_buf(c, rows * (size_t)a.ldx, sizeof *x); /* NaN beyond k */
    for (size_t r = 0; r < rows; r++) {
        conform_fill(x + r * (size_t)a.ldx, (size_t)k, family, 1.0F);
        if (terms == 1)
            conform_round(x + r * (size_t)a.ldx, (size_t)k);
    }
    float *w = conform_filled(c, (size_t)n * (size_t)k,
                              family == CONFORM_OFFSET ? CONFORM_NORMAL : family, true);
    a.x = x;
    a.bias = conform_int(0, 1) ? conform_filled(c, (size_t)n, CONFORM_NORMAL, false) : NULL;
    a.gate = conform_int(0, 1) ? conform_filled(c, (size_t)n, CONFORM_NORMAL, false) : NULL;
    a.y = conform_buf(c, rows * (size_t)a.ldy, sizeof *a.y);
    if (a.add)
        conform_fill(a.y, rows * (size_t)a.ldy, CONFORM_NORMAL, 1.0F);
    a.rows = conform_live(c, live);
    struct tec_gemm_args ref = a, fast = a;
    ref.w = conform_matrix(c, c->ref, true, n, k, w);
    fast.w = conform_matrix(c, c->fast, true, n, k, w);
    struct conform_call call = {
        .ref = &ref, .fast = &fast, .live = live, .outs = 1, .full = live == max_rows};
    call.out[0] = (struct conform_out){
        a.y, live, (size_t)n * sizeof(float), (size_t)a.ldy * sizeof(float), NULL, 0, 1};
    float *before = conform_buf(c, rows * (size_t)a.ldy, sizeof *before);
    memcpy(before, a.y, rows * (size_t)a.ldy * sizeof *before);
    conform_run(c, &call);
    *c->live = live;
    compare(c, &a, w, before);
    conform_end(c);
}

/* Where x holds bf16 values, one term and two are the same bytes. */
static void one_as_two(struct conform *c, int rows, int k)
{
    enum { N = 48 };
    size_t ldx = ((size_t)k + 15) / 16 * 16, size = (size_t)rows * N;
    float *y[2] = {conform_buf(c, size, sizeof(float)), conform_buf(c, size, sizeof(float))};
    struct tec_gemm_args a = {.max_rows = rows, .ldx = (int)ldx, .ldy = N, .n = N, .k = k};
    a.rows = conform_ints(c, 1, rows);
    a.x = conform_filled(c, (size_t)rows * ldx, CONFORM_NORMAL, true);
    a.w = conform_matrix(c, c->fast, true, N, k, conform_filled(c, (size_t)N * (size_t)k, 0, true));
    for (int i = 0; i < 2; i++) {
        a.rounded = !i;
        a.terms = i ? 2 : 0;
        a.y = y[i];
        c->fast->gemm_bf16(&a, (struct tec_part){0, 1});
    }
    if (memcmp(y[0], y[1], size * sizeof(float)) != 0)
        conform_fail(c, "k %d, %d rows of bf16 values: as two terms a row is not the same", k,
                     rows);
    conform_end(c);
}

/* The processor's own instructions against the emulated ones: the same bytes, denormals included.
 */
static void as_emulated(struct conform *c, int rows, int n, int k, int terms,
                        enum conform_family family)
{
    const struct tec_kernels emulated = c->tiles      ? tiles_tier_table()
                                        : c->matrices ? matrices_tier_table()
                                                      : pairs_tier_table();
    size_t ldx = ((size_t)k + 15) / 16 * 16, size = (size_t)rows * (size_t)n;
    float *y[2] = {conform_buf(c, size, sizeof(float)), conform_buf(c, size, sizeof(float))};
    struct tec_gemm_args a = {.max_rows = rows, .ldx = (int)ldx, .ldy = n, .n = n, .k = k};
    a.rows = conform_ints(c, 1, rows);
    a.terms = 2;
    a.rounded = terms == 1;
    a.x = conform_filled(c, (size_t)rows * ldx, family, terms == 1);
    float *w = conform_filled(c, (size_t)n * (size_t)k, CONFORM_NORMAL, true);
    for (int i = 0; c->matrices && family == CONFORM_DENORMAL && i < n * k; i++)
        w[i] *= 0x1p20F; /* products with what is read as 0 would not be small */
    a.w = conform_matrix(c, c->fast, true, n, k, w);
    for (int i = 0; i < 2; i++) {
        a.y = y[i];
        (i ? &emulated : c->fast)->gemm_bf16(&a, (struct tec_part){0, 1});
    }
    if (memcmp(y[0], y[1], size * sizeof(float)) != 0)
        conform_fail(c, "[%dx%dx%d]: not the bytes of the emulated instructions", rows, n, k);
    conform_end(c);
}

void conform_terms(struct conform *c)
{
    for (int i = 0; i < EDGES; i++)
        terms_shape(c, edges[i].rows, edges[i].live, edges[i].n, conform_scale(c, edges[i].k, 640),
                    2 - i % 2, i % 3 ? CONFORM_NORMAL : CONFORM_OFFSET);
    for (int i = 0; i < conform_few(c, RANDOM); i++) {
        int rows = conform_int(1, conform_int(1, 120));
        terms_shape(c, rows, conform_int(0, rows), 16 * conform_int(1, 8),
                    conform_int(1, conform_int(1, 500)), 1 + i % 2, CONFORM_NORMAL);
    }
    for (int f = 0; f < CONFORM_FAMILIES; f++)
        for (int terms = 1; terms <= 2; terms++)
            terms_shape(c, 17, 17, 48, 101, terms, (enum conform_family)f);
    for (int f = 0; c->tiles && f < CONFORM_FAMILIES; f++)
        as_emulated(c, 21, 80, 301, 1 + f % 2, (enum conform_family)f);
    for (int i = 0; conform_has_tiles(c->fast) && !c->slow && i < 2 * LARGE; i++)
        terms_shape(c, large[i / 2].rows, large[i / 2].rows, large[i / 2].n, large[i / 2].k,
                    1 + i % 2, CONFORM_NORMAL);
    for (int f = 0; (c->pairs || c->matrices) && f < CONFORM_FAMILIES; f++)
        for (int rows = 5; rows < 64; rows += 53)
            as_emulated(c, rows, 80, conform_scale(c, 1301, 301), 1, (enum conform_family)f);
    if (!c->matrices) { /* which add one term in another order */
        one_as_two(c, 19, 77);
        one_as_two(c, 3, 300);
    }
}
