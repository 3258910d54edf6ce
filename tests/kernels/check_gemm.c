/* check_gemm.c - checks the matrix products of every tier: against float64, against the reference,
 * and for bytes that do not depend on the planned capacity. */
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
    int max_rows, live, n, k;
};

/* Sizes at the edges of panels, register tiles and cache blocks; then layers of real models. */
static const struct shape edges[] = {
    {1, 1, 16, 1},       {1, 1, 16, 2},      {3, 2, 32, 7},      {1, 1, 48, 17},
    {9, 8, 80, 64},      {8, 7, 112, 65},    {13, 13, 144, 129}, {16, 15, 240, 255},
    {29, 29, 272, 256},  {51, 51, 64, 257},  {51, 20, 32, 1027}, {85, 85, 528, 40},
    {113, 113, 48, 300}, {200, 190, 32, 19}, {2, 1, 2560, 2048}, {1, 1, 4096, 1024},
    {4, 3, 1024, 4096},  {5, 5, 4304, 1152}, {1, 1, 256, 16384}, {9, 9, 512, 2048},
};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 30 };

static struct shape choose(const struct conform *c, int i)
{
    if (i < EDGES) {
        struct shape s = edges[i];
        s.n = conform_scale(c, s.n, 320);
        s.k = conform_scale(c, s.k, 640);
        return s;
    }
    int max = conform_int(1, conform_int(1, 120));
    return (struct shape){max, conform_int(0, 3) ? max : conform_int(0, max),
                          16 * conform_int(1, 20), conform_int(1, conform_int(1, 700))};
}

/* The room beyond the bound: sums of k products whose sizes add up to `size`, where each step is
 * rounded to one part in 2^24 and products below the normal range are rounded to 2^-149. */
static double slack(int k, double size)
{
    return k * (double)FLT_EPSILON * size + k * ldexp(1.0, -149);
}

/* Check one element of the reference against a sum in float64 over the unpacked weights. */
static void check_reference(struct conform *c, const struct tec_gemm_args *a, const float *w,
                            const float *before, int at, bool bf16)
{
    int r = at / a->n, col = at % a->n;
    const float *x = a->x + (size_t)r * (size_t)a->ldx, *row = w + (size_t)col * (size_t)a->k;
    double sum = 0.0, size = 0.0;
    for (int i = 0; i < a->k; i++) {
        sum += (double)x[i] * (double)row[i];
        size += fabs((double)x[i] * (double)row[i]);
    }
    size_t y = (size_t)r * (size_t)a->ldy + (size_t)col;
    const float *gates = a->fixed && r < *a->fixed ? a->fixed_gate : a->gate;
    double bias = a->bias ? (double)a->bias[col] : 0.0, gate = gates ? (double)gates[col] : 1.0;
    double want = gate * (sum + bias) + (a->add ? (double)before[y] : 0.0);
    /* Bias, gate, add and the last store then round once each. */
    double rest = (fabs(sum) + fabs(bias)) * fabs(gate) + fabs(want);
    double bound = 4.0 * (double)FLT_EPSILON * rest + ldexp(1.0, -148);
    if (bf16)
        bound += slack(a->k, size) * fabs(gate);
    conform_close(c, (double)((const float *)c->want[0])[y], want, bound,
                  "reference [%dx%dx%d] row %d column %d", a->max_rows, a->n, a->k, r, col);
}

/* The sum of |x w| of one element, times its gate. */
static double size_of(const struct tec_gemm_args *a, const float *w, int r, int col)
{
    const float *x = a->x + (size_t)r * (size_t)a->ldx, *row = w + (size_t)col * (size_t)a->k;
    const float *gates = a->fixed && r < *a->fixed ? a->fixed_gate : a->gate;
    double size = 0.0;
    for (int i = 0; i < a->k; i++)
        size += fabs((double)x[i] * (double)row[i]);
    return gates ? size * fabs((double)gates[col]) : size;
}

/* Another order of a bf16 sum, by tensor cores: 16 products and the sum so far are aligned and cut
 * at 2^-23 of the largest, twice for each 16 k (two terms of x). The reference rounds each product
 * and each step at 2^-24. Then sums of splits, bias, gate and add are rounded once each, from two
 * sums that differ.
 *
 * What two terms leave of x is below 2^-17 of it, 128 units of 2^-24. 2^-18 of that is counted by
 * itself. The other 64 are among the rest: the first instruction adds products of the small terms,
 * 2^-8 of x, to nothing, so that its 34 are free, the reference's k + 1 are counted twice, and of
 * the 40 behind the sum few are used. */
static double other_order(const struct tec_gemm_args *a, double size, double want)
{
    int blocks = a->k / 16 + 1;
    double steps = 2.0 * 17.0 * blocks + a->k + 1.0;
    double half = (double)FLT_EPSILON / 2.0;
    return size * (2.0 * half * steps + ldexp(1.0, -18)) + 40.0 * half * (size + fabs(want)) +
           ldexp(1.0, -148);
}

/* A float32 sum of the vector tiers and of CUDA against the reference's of float64: k is cut into
 * chains of 32 fused steps from 0, whose sums are added. Each product takes part in at most so many
 * roundings of 2^-24; then bias, gate and add are rounded once each, from two sums that differ. */
static double chains_order(const struct tec_gemm_args *a, double size, int r, int col, double want)
{
    enum { CHAIN = 32 };
    int steps = (a->k < CHAIN ? a->k : CHAIN) + (a->k - 1) / CHAIN + 1;
    double half = (double)FLT_EPSILON / 2.0;
    const float *gates = a->fixed && r < *a->fixed ? a->fixed_gate : a->gate;
    double bias = a->bias ? fabs((double)a->bias[col] * (gates ? (double)gates[col] : 1.0)) : 0.0;
    return size * half * steps * 1.001 + 8.0 * half * (size + bias + fabs(want)) +
           (a->k + 4) * ldexp(1.0, -149);
}

/* Products of two bf16 are exact in float32, so in one order the sums are the same bits with or
 * without fused multiply-add. Only where products leave the normal range may they differ. */
static void compare(struct conform *c, const struct tec_gemm_args *a, const float *w, bool bf16,
                    enum conform_family family)
{
    const float *got = c->got[0], *want = c->want[0];
    for (int r = 0; r < *a->rows; r++)
        for (int col = 0; col < a->n; col++) {
            size_t at = (size_t)r * (size_t)a->ldy + (size_t)col;
            double bound = 0.0;
            if (bf16 && family == CONFORM_DENORMAL)
                bound = slack(a->k, 16.0 * a->k);
            if (bf16 && !c->same_order)
                bound += other_order(a, size_of(a, w, r, col), (double)want[at]);
            if (!bf16 && c->fast->gemm_f32 != c->ref->gemm_f32)
                bound += chains_order(a, size_of(a, w, r, col), r, col, (double)want[at]);
            conform_close(c, (double)got[at], (double)want[at], bound,
                          "[%dx%dx%d] live %d row %d column %d", a->max_rows, a->n, a->k, *a->rows,
                          r, col);
        }
}

/* Give no, one, some or all rows fixed gates, and counts that no plan makes. */
static void give_fixed(struct conform *c, struct tec_gemm_args *a)
{
    const int counts[] = {0, 1, conform_int(0, a->max_rows), a->max_rows, a->max_rows + 9, -3};
    a->fixed = conform_ints(c, 1, counts[conform_int(0, 5)]);
    a->fixed_gate =
        conform_int(0, 3) ? conform_filled(c, (size_t)a->n, CONFORM_NORMAL, false) : NULL;
}

/* Float32 products of a GPU have the bytes of the vector tiers. */
static void compare_vector(struct conform *c, struct tec_gemm_args a, const float *w,
                           const float *before)
{
    struct tec_kernels vector;
    if (!conform_vector(c, &vector))
        return;
    size_t size = (size_t)a.max_rows * (size_t)a.ldy;
    a.w = conform_matrix(c, &vector, false, a.n, a.k, w);
    a.y = conform_buf(c, size, sizeof *a.y);
    for (size_t i = 0; i < size; i++)
        a.y[i] = before[i];
    vector.gemm_f32(&a, (struct tec_part){0, 1});
    conform_rows(c, a.y, *a.rows, a.n, a.ldy);
}

static void gemm_shape(struct conform *c, struct shape s, bool bf16, enum conform_family family)
{
    size_t rows = (size_t)s.max_rows, n = (size_t)s.n, k = (size_t)s.k;
    struct tec_gemm_args a = {.max_rows = s.max_rows, .n = s.n, .k = s.k};
    a.ldx = conform_ld(s.k);
    a.ldy = conform_ld(s.n);
    a.add = conform_int(0, 1);
    float *x = conform_buf(c, rows * (size_t)a.ldx, sizeof *x); /* NaN beyond k */
    for (size_t r = 0; r < rows; r++) {
        conform_fill(x + r * (size_t)a.ldx, k, family, 1.0F);
        if (bf16 && (c->same_order || conform_int(0, 1)))
            conform_round(x + r * (size_t)a.ldx, k);
    }
    float *w = conform_filled(c, n * k, family == CONFORM_OFFSET ? CONFORM_NORMAL : family, bf16);
    a.x = x;
    a.bias = conform_int(0, 1) ? conform_filled(c, n, CONFORM_NORMAL, false) : NULL;
    a.gate = conform_int(0, 1) ? conform_filled(c, n, CONFORM_NORMAL, false) : NULL;
    a.y = conform_buf(c, rows * (size_t)a.ldy, sizeof *a.y);
    if (a.add)
        conform_fill(a.y, rows * (size_t)a.ldy, CONFORM_NORMAL, 1.0F);
    a.rows = conform_live(c, s.live);
    if (conform_int(0, 1))
        give_fixed(c, &a);
    struct tec_gemm_args ref = a, fast = a;
    ref.w = conform_matrix(c, c->ref, bf16, s.n, s.k, w);
    fast.w = conform_matrix(c, c->fast, bf16, s.n, s.k, w);
    struct conform_call call = {
        .ref = &ref, .fast = &fast, .live = s.live, .outs = 1, .full = s.live == s.max_rows};
    call.out[0] = (struct conform_out){
        a.y, s.live, n * sizeof(float), (size_t)a.ldy * sizeof(float), NULL, 0, 1};
    float *before = conform_buf(c, rows * (size_t)a.ldy, sizeof *before);
    for (size_t i = 0; i < rows * (size_t)a.ldy; i++)
        before[i] = a.y[i];
    conform_run(c, &call);
    *c->live = s.live;
    compare(c, &a, w, bf16, family);
    if (!bf16)
        compare_vector(c, a, w, before);
    for (int i = 0; i < 20 && s.live > 0; i++)
        check_reference(c, &a, w, before, conform_int(0, s.live * s.n - 1), bf16);
    conform_end(c);
}

/* A row has the bytes of the plain kernel with its own gate, whatever the count is; few rows and
 * many rows take different code paths. */
static void gemm_fixed(struct conform *c, const struct tec_kernels *table, bool bf16, int rows)
{
    enum { N = 32, K = 37, LDX = 48 };
    size_t size = (size_t)rows * N;
    int *live = conform_ints(c, 1, rows), *fixed = conform_ints(c, 1, 0);
    float *x = conform_filled(c, (size_t)rows * LDX, CONFORM_NORMAL, bf16), *y[3];
    const void *w = conform_matrix(c, table, bf16, N, K, conform_filled(c, (size_t)N * K, 0, bf16));
    const float *gate[2] = {conform_filled(c, N, CONFORM_NORMAL, false),
                            conform_filled(c, N, CONFORM_NORMAL, false)};
    struct tec_gemm_args a[3];
    for (int i = 0; i < 3; i++) {
        y[i] = conform_buf(c, size, sizeof(float));
        a[i] = (struct tec_gemm_args){.x = x,
                                      .w = w,
                                      .gate = gate[i == 1],
                                      .y = y[i],
                                      .rows = live,
                                      .max_rows = rows,
                                      .ldx = LDX,
                                      .ldy = N,
                                      .n = N,
                                      .k = K};
    }
    a[2].fixed = fixed;
    a[2].fixed_gate = gate[1];
    for (*fixed = 0; *fixed <= rows; ++*fixed) {
        for (int i = 0; i < 3; i++)
            (bf16 ? table->gemm_bf16 : table->gemm_f32)(&a[i], (struct tec_part){0, 1});
        for (int r = 0; r < rows; r++)
            if (memcmp(y[2] + r * N, y[r < *fixed] + r * N, N * sizeof(float)) != 0)
                conform_fail(c, "%d fixed of %d: row %d is not that of the plain kernel", *fixed,
                             rows, r);
    }
    conform_end(c);
}

/* A row has the same bytes whatever capacity was planned for; x and y hold the live rows alone.
 * Capacities and lengths of k choose among tiles, and between blocks for the parts of a sum and one
 * block that walks over them. */
static void gemm_capacities(struct conform *c, const struct tec_kernels *table, bool bf16, int n,
                            int k)
{
    enum { LIVE = 40 };
    static const int capacities[] = {LIVE, 1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 130, 4300, 17000};
    size_t ldx = ((size_t)k + 15) / 16 * 16, ldy = (size_t)n;
    int *live = conform_ints(c, 1, 0);
    float *y[2] = {conform_buf(c, (size_t)LIVE * ldy, sizeof(float)),
                   conform_buf(c, (size_t)LIVE * ldy, sizeof(float))};
    struct tec_gemm_args a = {.rows = live, .ldx = (int)ldx, .ldy = n, .n = n, .k = k};
    a.x = conform_filled(c, LIVE * ldx, CONFORM_NORMAL, bf16 && c->same_order);
    a.w = conform_matrix(c, table, bf16, n, k, conform_filled(c, ldy * (size_t)k, 0, bf16));
    a.bias = conform_filled(c, ldy, CONFORM_NORMAL, false);
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        a.max_rows = capacities[i];
        a.y = y[i > 0];
        *live = a.max_rows < LIVE ? a.max_rows : LIVE;
        (bf16 ? table->gemm_bf16 : table->gemm_f32)(&a, (struct tec_part){0, 1});
        if (i && memcmp(y[0], y[1], (size_t)*live * ldy * sizeof(float)) != 0)
            conform_fail(c, "k %d: planned for %d rows, a row is not the same", k, a.max_rows);
    }
    conform_end(c);
}

/* Where x holds bf16 values, declaring so must change no byte: for few and for many rows, for
 * splits as blocks and walked over, and for a device that tiles fill. */
static void gemm_rounded(struct conform *c, const struct tec_kernels *table, int rows, int k)
{
    enum { N = 48 };
    size_t ldx = ((size_t)k + 15) / 16 * 16, size = (size_t)rows * N;
    float *y[2] = {conform_buf(c, size, sizeof(float)), conform_buf(c, size, sizeof(float))};
    struct tec_gemm_args a = {.max_rows = rows, .ldx = (int)ldx, .ldy = N, .n = N, .k = k};
    a.rows = conform_ints(c, 1, rows);
    a.x = conform_filled(c, (size_t)rows * ldx, CONFORM_NORMAL, true);
    a.w = conform_matrix(c, table, true, N, k, conform_filled(c, (size_t)N * (size_t)k, 0, true));
    for (int i = 0; i < 3; i++) {
        cuda_tier_plan_for(0, i < 2 ? 0 : 1);
        a.rounded = i > 0;
        a.y = y[i > 0];
        table->gemm_bf16(&a, (struct tec_part){0, 1});
        if (i && memcmp(y[0], y[1], size * sizeof(float)) != 0)
            conform_fail(c, "k %d, %d rows of bf16 values: said so, a row is not the same", k,
                         rows);
    }
    cuda_tier_plan_for(0, 0);
    conform_end(c);
}

/* A product that is too small for float32 leaves -0 at the end of a chain: whatever a kernel adds
 * beyond k, or for chains that there are not, must leave it. */
static void gemm_underflow(struct conform *c, int rows, int k)
{
    enum { N = 32 };
    struct tec_kernels vector;
    if (!conform_vector(c, &vector))
        return;
    size_t ldx = ((size_t)k + 15) / 16 * 16, size = (size_t)rows * N;
    float *x = conform_buf(c, (size_t)rows * ldx, sizeof *x);
    float *w = conform_buf(c, (size_t)N * (size_t)k, sizeof *w), *y[2];
    memset(x, 0, (size_t)rows * ldx * sizeof *x);
    memset(w, 0, (size_t)N * (size_t)k * sizeof *w);
    for (int r = 0; r < rows; r++)
        x[(size_t)r * ldx + (size_t)k - 1] = -1e-30F;
    for (int n = 0; n < N; n++)
        w[n * k + k - 1] = 1e-30F;
    struct tec_gemm_args a = {.max_rows = rows, .ldx = (int)ldx, .ldy = N, .n = N, .k = k, .x = x};
    a.rows = conform_ints(c, 1, rows);
    for (int i = 0; i < 2; i++) {
        const struct tec_kernels *table = i ? c->fast : &vector;
        a.y = y[i] = conform_buf(c, size, sizeof(float));
        a.w = conform_matrix(c, table, false, N, k, w);
        table->gemm_f32(&a, (struct tec_part){0, 1});
    }
    if (memcmp(y[0], y[1], size * sizeof(float)) != 0)
        conform_fail(c, "k %d, %d rows: the sign of a sum that is 0 is lost", k, rows);
    conform_end(c);
}

static void gemm(struct conform *c, bool bf16)
{
    static const int rows[] = {1, 3, 8, 16, 29};
    for (int i = 0; i < 5; i++) {
        gemm_fixed(c, c->ref, bf16, rows[i]);
        gemm_fixed(c, c->fast, bf16, rows[i]);
    }
    for (int k = 5; k < 600; k += 264)
        gemm_capacities(c, c->fast, bf16, 32, k);
    gemm_capacities(c, c->fast, bf16, 144, 397); /* the last split is less than one step */
    /* A tile unit and products of matrices have an order of their own. */
    for (int i = 0; bf16 && !c->tiles && !c->matrices && i < 8; i++)
        gemm_rounded(c, c->fast, i < 4 ? 8 << i : i * 25, i % 2 ? 397 : 40);
    for (int i = 0; i < EDGES + conform_few(c, RANDOM); i++)
        gemm_shape(c, choose(c, i), bf16, i % 3 ? CONFORM_NORMAL : CONFORM_OFFSET);
    for (int f = 0; f < CONFORM_FAMILIES; f++)
        gemm_shape(c, (struct shape){17, 17, 96, 301}, bf16, (enum conform_family)f);
    for (int k = 29; !bf16 && k <= 32; k++)
        for (int many = 3; many < 200; many += 97)
            gemm_underflow(c, many, k);
    if (bf16)
        conform_terms(c);
    if (bf16 && !c->same_order) {
        conform_chains(c);
        conform_handed(c);
        conform_clusters(c);
    }
}

void conform_gemm_f32(struct conform *c)
{
    gemm(c, false);
    conform_picture(c, c->ref);
    if (c->fast->layout != TEC_MATRIX_TILES)
        conform_picture(c, c->fast);
}

void conform_gemm_bf16(struct conform *c)
{
    gemm(c, true);
}
