/* check_int8.c - checks matrix products with 8-bit weights of every tier against float64, within
 * bounds derived for whole numbers; and how weights are rounded. */
#include "kernels/avx2/avx2.h"
#include "kernels/avx512/avx512.h"
#include "kernels/int8.h"
#include "kernels/neon/neon.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Sizes at the edges of lines, groups, panels and register tiles; then layers of real models. */
static const struct {
    int rows, n, k;
} edges[] = {{1, 16, 1},      {2, 16, 3},      {3, 48, 7},       {4, 64, 128},    {5, 80, 129},
             {6, 96, 136},    {7, 112, 127},   {8, 112, 256},    {9, 144, 260},   {13, 16, 504},
             {29, 272, 90},   {1, 2560, 2048}, {33, 1024, 1024}, {65, 80, 264},   {107, 48, 133},
             {19, 560, 8192}, {33, 32, 9001},  {1, 16, 140000},  {32, 528, 3970}, {70, 16, 40}};

enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 30 };

/* Pack weights of any whole numbers, with scales of very different sizes. */
static unsigned char *packed(struct conform *c, int n, int k)
{
    size_t size = tec_int8_size(n, k), panel = tec_int8_panel(k);
    unsigned char *w = conform_buf(c, size, 1);
    memset(w, 0, size);
    for (int i = 0; i < n; i++) {
        unsigned char *at = w + (size_t)(i / 16) * panel;
        float scale = ldexpf(fabsf(conform_float(1.0F)) + 0.1F, conform_int(-12, 4));
        memcpy(at + (size_t)(i % 16) * sizeof scale, &scale, sizeof scale);
        for (int j = 0; j < k; j++)
            at[tec_int8_at(j) + (size_t)(i % 16 * TEC_INT8_DEEP + j % TEC_INT8_DEEP)] =
                (unsigned char)(conform_int(0, 9) ? conform_int(-127, 127)
                                                  : 127 - 254 * conform_int(0, 1));
    }
    return w;
}

static double weight(const struct tec_gemm_args *a, int k, int n)
{
    const unsigned char *at = (const unsigned char *)a->w + (size_t)(n / 16) * tec_int8_panel(a->k);
    float scale;
    memcpy(&scale, at + (size_t)(n % 16) * sizeof scale, sizeof scale);
    return (int8_t)at[tec_int8_at(k) + (size_t)(n % 16 * TEC_INT8_DEEP + k % TEC_INT8_DEEP)] *
           (double)scale;
}

/* Half a unit of x where this is the largest of a group: 32639 units are 1.992 * 2^14; of one
 * digit 127 are, but for what is rounded. */
static double half_unit(int digits, double largest)
{
    return digits == 1 ? fmax(largest, ldexp(1.0, -100)) / 254.0 * 1.0001
                       : ldexp(largest, -15) * 1.005;
}

/* Compute an element in float64, the size of what is summed for it, and the possible error of half
 * a unit in each group's numbers, all times the gate. */
static double exact(const struct tec_gemm_args *a, const float *before, int r, int n, double *size,
                    double *cut)
{
    double sum = 0.0, largest = 0.0, weights = 0.0;
    *size = *cut = 0.0;
    for (int k = 0; k < a->k; k++) {
        double x = (double)a->x[(size_t)r * (size_t)a->ldx + (size_t)k];
        sum += x * weight(a, k, n);
        *size += fabs(x * weight(a, k, n));
        largest = fmax(largest, fabs(x));
        weights += fabs(weight(a, k, n));
        if ((k + 1) % TEC_INT8_GROUP == 0 || k + 1 == a->k) {
            *cut += half_unit(a->digits, largest) * weights;
            largest = weights = 0.0;
        }
    }
    double bias = a->bias ? (double)a->bias[n] : 0.0, gate = a->gate ? (double)a->gate[n] : 1.0;
    *size = (*size + *cut + fabs(bias)) * fabs(gate);
    *cut *= fabs(gate);
    return gate * (sum + bias) +
           (a->add ? (double)before[(size_t)r * (size_t)a->ldy + (size_t)n] : 0.0);
}

/* The sums of groups are exact; each is rounded once and added once, then scale, bias, gate and add
 * round. */
static void check_one(struct conform *c, const struct tec_gemm_args *a, const float *before, int r,
                      int n)
{
    double size, cut, want = exact(a, before, r, n, &size, &cut);
    size_t at = (size_t)r * (size_t)a->ldy + (size_t)n;
    int steps = 2 * (a->k / TEC_INT8_GROUP) + 6;
    double bound =
        cut + 0.5 * (steps * size + 2.0 * fabs(want)) * (double)FLT_EPSILON + ldexp(1.0, -120);
    conform_close(c, (double)((const float *)c->want[0])[at], want, bound,
                  "reference [%dx%dx%d] row %d column %d", a->max_rows, a->n, a->k, r, n);
}

/* Fill a row of x: with one size; with sizes that differ between and within groups; or at the edge
 * of what two digits hold. */
static void fill_x(float *x, int k)
{
    int family = conform_int(0, 2);
    conform_fill(x, (size_t)k, CONFORM_NORMAL, 1.0F);
    for (int i = 0; i < k && family == 1; i++)
        x[i] = ldexpf(x[i], i / 24 % 3 ? conform_int(-3, 3) : conform_int(-20, 12));
    for (int i = 0; i < k && family == 2; i++) {
        uint32_t bits = 0x3f7efeffU + (uint32_t)conform_int(-2, 2) + ((uint32_t)(i / 40 % 5) << 23);
        memcpy(&x[i], &bits, sizeof bits);
        x[i] = conform_int(0, 1) ? x[i] : -x[i];
    }
}

/* The sum of a group in whole units, times the unit: in float64, but for what is rounded to choose
 * a unit. Both are found in another way than kernels do. */
static double whole_units(const struct tec_gemm_args *a, const float *row, int n)
{
    double most = 0.0, sum = 0.0;
    int finer = 126;
    for (int j = 0; j < a->k; j++) /* not fmax: gcc 12 for aarch64 fails on a loop of it */
        most = fabs((double)row[j]) > most ? fabs((double)row[j]) : most;
    if (a->digits == 1) {
        most = most < ldexp(1.0, -100) ? ldexp(1.0, -100) : most;
        float unit = (float)(most * (double)(1.0F / 127.0F)), per = (float)(1.0 / (double)unit);
        for (int j = 0; j < a->k; j++)
            sum += rint((double)(float)((double)row[j] * (double)per)) * weight(a, j, n);
        return sum * (double)unit;
    }
    while (rint(ldexp(most, finer)) > (double)TEC_INT8_MOST)
        finer--;
    for (int j = 0; j < a->k; j++)
        sum += rint(ldexp((double)row[j], finer)) * weight(a, j, n);
    return ldexp(sum, -finer);
}

/* Check one group whose sum of x in whole units is computed here in another way: only roundings of
 * float32 are left, so that a missing digit, or one cut off instead of rounded, is seen. */
static void one_group(struct conform *c, int k, int family, int digits)
{
    enum { ROWS = 3, N = 16 };
    float *x = conform_buf(c, (size_t)ROWS * (size_t)k, sizeof *x), y[ROWS * N];
    struct tec_gemm_args a = {.x = x, .ldx = k, .ldy = N, .n = N, .k = k, .y = y};
    a.w = packed(c, N, k);
    a.max_rows = ROWS;
    a.digits = digits;
    a.rows = conform_ints(c, 1, ROWS);
    for (int i = 0; i < ROWS; i++)
        fill_x(x + (size_t)i * (size_t)k, k);
    for (int i = 0; i < ROWS * k && family > 0; i++)
        x[i] = family == 1 ? ldexpf(x[i], -130) : family == 2 ? ldexpf(x[i], 80) : -0.0F;
    c->ref->gemm_int8(&a, (struct tec_part){0, 1});
    for (int i = 0; i < ROWS * N; i++) {
        double want = whole_units(&a, x + (size_t)(i / N) * (size_t)k, i % N);
        conform_close(
            c, (double)y[i], want, fabs(1.5 * (double)FLT_EPSILON * want) + ldexp(1.0, -149),
            "family %d, k %d, %d digits: row %d column %d", family, k, digits, i / N, i % N);
    }
    conform_end(c);
}

/* A row that holds NaN or infinity must give NaN, and the other rows must not change. */
static void not_finite(struct conform *c, int digits)
{
    enum { ROWS = 5, N = 48, K = 200 };
    float *x = conform_normal(c, (size_t)ROWS * K);
    struct tec_gemm_args a = {.x = x, .ldx = K, .ldy = N, .n = N, .k = K, .digits = digits};
    float *y[2] = {conform_buf(c, (size_t)ROWS * N, sizeof(float)),
                   conform_buf(c, (size_t)ROWS * N, sizeof(float))};
    a.w = packed(c, N, K);
    a.max_rows = ROWS;
    a.rows = conform_ints(c, 1, ROWS);
    for (int i = 0; i < 2; i++) {
        a.y = y[i];
        c->fast->gemm_int8(&a, (struct tec_part){0, 1});
        x[1 * K + 140] = INFINITY;
        x[3 * K + 7] = NAN;
    }
    for (int i = 0; i < ROWS * N; i++) {
        bool bad = i / N == 1 || i / N == 3;
        if (bad ? !isnan(y[1][i]) : memcmp(&y[0][i], &y[1][i], sizeof(float)) != 0)
            conform_fail(c, "row %d column %d is %g", i / N, i % N, (double)y[1][i]);
    }
    conform_end(c);
}

static void shape(struct conform *c, int rows, int n, int k)
{
    struct tec_gemm_args a = {.max_rows = rows, .n = n, .k = k};
    a.ldx = conform_ld(k);
    a.ldy = conform_ld(n);
    a.add = conform_int(0, 1);
    a.digits = conform_int(0, 1) ? 1 : 2 * conform_int(0, 1);
    size_t size = (size_t)rows * (size_t)a.ldy;
    float *x = conform_buf(c, (size_t)rows * (size_t)a.ldx, sizeof *x); /* NaN beyond k */
    for (int r = 0; r < rows; r++)
        fill_x(x + (size_t)r * (size_t)a.ldx, k);
    a.x = x;
    a.w = packed(c, n, k);
    a.bias = conform_int(0, 1) ? conform_normal(c, (size_t)n) : NULL;
    a.gate = conform_int(0, 2) ? NULL : conform_normal(c, (size_t)n);
    a.y = conform_buf(c, size, sizeof *a.y);
    if (a.add)
        conform_fill(a.y, size, CONFORM_NORMAL, 1.0F);
    float *before = conform_buf(c, size, sizeof *before);
    memcpy(before, a.y, size * sizeof *before);
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .outs = 1, .full = true};
    call.out[0] = (struct conform_out){a.y, rows, (size_t)n * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < rows; r++) { /* exact sums and one chain: the same bits everywhere */
        const char *got = (const char *)c->got[0], *want = (const char *)c->want[0];
        size_t at = (size_t)r * (size_t)a.ldy * sizeof(float);
        if (memcmp(got + at, want + at, (size_t)n * sizeof(float)) != 0)
            conform_fail(c, "[%dx%dx%d], %d digits: row %d is not the reference's", rows, n, k,
                         a.digits, r);
    }
    for (int i = 0; i < 20; i++)
        check_one(c, &a, before, conform_int(0, rows - 1), conform_int(0, n - 1));
    conform_end(c);
}

/* A row has the same bytes whatever capacity was planned; x and y hold the live rows alone. */
static void capacities(struct conform *c, int n, int k, int digits)
{
    enum { LIVE = 40 };
    static const int most[] = {LIVE, 1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 300, 9000};
    int *live = conform_ints(c, 1, 0);
    size_t size = (size_t)LIVE * (size_t)n;
    float *y[2] = {conform_buf(c, size, sizeof(float)), conform_buf(c, size, sizeof(float))};
    struct tec_gemm_args a = {.rows = live, .ldx = conform_ld(k), .ldy = n, .n = n, .k = k};
    a.x = conform_normal(c, (size_t)LIVE * (size_t)a.ldx);
    a.w = packed(c, n, k);
    a.digits = digits;
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        a.max_rows = most[i];
        a.y = y[i > 0];
        *live = a.max_rows < LIVE ? a.max_rows : LIVE;
        cuda_tier_plan_for(0, i % 3 ? 0 : 1);
        c->fast->gemm_int8(&a, (struct tec_part){0, 1});
        if (i && memcmp(y[0], y[1], (size_t)*live * (size_t)n * sizeof(float)) != 0)
            conform_fail(c, "k %d, %d digits: planned for %d rows, a row is not the same", k,
                         digits, a.max_rows);
    }
    cuda_tier_plan_for(0, 0);
    conform_end(c);
}

/* Many rows: for a GPU of few processors and of many, which takes tiles of other sizes, and with
 * room for the digits of 128 rows or a few more at once. */
static void many_rows(struct conform *c)
{
    static const int rows[] = {65, 66, 100, 127, 128, 129, 190, 257, 300},
                     processors[] = {1, 2, 3, 5, 8, 400};
    enum { ROWS = sizeof rows / sizeof rows[0], OTHERS = sizeof processors / sizeof processors[0] };
    int shapes = conform_few(c, 2 * ROWS), step = 2 * ROWS / shapes;
    for (int i = 0; i < shapes; i++) {
        int k = i % 4 ? conform_int(1, 700) : 128 * conform_int(1, 5);
        size_t all = (size_t)(k + 127) / 128 * 128 * (2 * 128 + 4);
        cuda_tier_plan_for(0, processors[conform_int(0, OTHERS - 1)]);
        cuda_tier_room(0, i % 3 ? 0 : all + (size_t)conform_int(0, 1 << 17));
        shape(c, rows[i * step % ROWS], 16 * conform_int(1, 20), k);
    }
    cuda_tier_plan_for(0, 0);
    cuda_tier_room(0, 0);
}

/* Weights are rounded to the nearest of 255 numbers of a column, ties to even; what is packed in
 * parts is what is packed at once. */
static void rounding(struct conform *c)
{
    enum { N = 37, K = 141 };
    float *src = conform_normal(c, (size_t)N * K);
    size_t size = tec_int8_size(48, K);
    unsigned char *w = conform_buf(c, size, 1), *parts = conform_buf(c, size, 1);
    struct tec_gemm_args a = {.w = w, .k = K};
    for (int i = 0; i < 6; i++)
        src[i] = (float)i + 0.5F; /* ties of a scale of 1 */
    src[6] = -127.0F;
    for (int i = 0; i < K; i++)
        src[5 * K + i] = 0.0F;
    memset(w, 0, size);
    memset(parts, 0, size);
    tec_int8_pack(w, N, K, 0, N, src);
    tec_int8_pack(parts, N, K, 0, 16, src);
    tec_int8_pack(parts, N, K, 16, N - 16, src + (size_t)16 * K);
    if (memcmp(w, parts, size) != 0)
        conform_fail(c, "packed in parts it is not the same");
    for (int n = 0; n < N; n++) {
        double most = 0.0;
        for (int k = 0; k < K; k++) /* not fmax: gcc 12 for aarch64 fails on a loop of it */
            most = fabs((double)src[n * K + k]) > most ? fabs((double)src[n * K + k]) : most;
        for (int k = 0; k < K; k++)
            conform_close(c, weight(&a, k, n), (double)src[n * K + k], most / 127.0 * 0.50001,
                          "weight %d of column %d", k, n);
    }
    for (int i = 0; i < 6; i++)
        conform_close(c, weight(&a, i, 0), rint(i + 0.5), 0.0, "tie %d", i);
    for (int n = N; n < 48; n++)
        conform_close(c, weight(&a, 7, n), 0.0, 0.0, "column %d pads a panel", n);
    conform_end(c);
}

static void products(struct conform *c)
{
    for (int digits = 1; digits <= 2 && !c->threads; digits++) { /* one lane: nothing to watch */
        capacities(c, 48, 520, digits);
        capacities(c, 144, 265, digits);
        capacities(c, 80, conform_int(150, 600), digits);
        not_finite(c, digits);
    }
    for (int i = 0; i < EDGES; i++)
        shape(c, edges[i].rows, conform_scale(c, edges[i].n, 160),
              conform_scale(c, edges[i].k, 512));
    for (int i = 0; i < conform_few(c, RANDOM); i++)
        shape(c, conform_int(1, 40), 16 * conform_int(1, 12), conform_int(1, 500));
}

/* The kernel that a tier has for processors without a tile unit, products of matrices of bytes, or
 * dot products of them, in the place of that with them. False: it has none. */
static bool without(struct tec_kernels *table)
{
    const struct tec_kernels all = *table;
#if defined(__x86_64__)
    if (all.gemm_int8 == tec_vnni_gemm_int8_avx2)
        table->gemm_int8 = tec_gemm_int8_avx2;
    if (all.gemm_int8 == tec_tiles_gemm_int8_avx512)
        table->gemm_int8 = tec_gemm_int8_avx512;
#elif defined(__aarch64__)
    if (all.gemm_int8 == tec_gemm_int8_mm_neon)
        table->gemm_int8 = tec_gemm_int8_dot_neon;
    if (all.gemm_int8 == tec_gemm_int8_dot_neon)
        table->gemm_int8 = tec_gemm_int8_neon;
#endif
    return table->gemm_int8 != all.gemm_int8;
}

/* Those kernels on a processor that has what they do without. */
static void plain_products(struct conform *c)
{
    const struct tec_kernels *all = c->fast;
    struct tec_kernels plain = *all;
    c->fast = &plain;
    while (without(&plain))
        products(c);
    c->fast = all;
}

/* Each number of k within a group. */
static void one_groups(struct conform *c)
{
    for (int family = 0; family < 4; family++)
        for (int k = 1; k <= TEC_INT8_GROUP; k *= 2)
            for (int digits = 1; digits <= 2; digits++)
                one_group(c, k, family, digits);
}

void conform_gemm_int8(struct conform *c)
{
    if (!c->threads) { /* of one lane */
        rounding(c);
        one_groups(c);
    }
    products(c);
    plain_products(c);
    many_rows(c);
    conform_digits(c);
    if (c->fast->layout == TEC_MATRIX_TILES)
        conform_chains(c);
    for (int i = 0; c->tiles && i < 4; i++) { /* more k, and panels, than have room at once */
        shape(c, 50, 32, i % 2 ? 4200 : 2200);
        shape(c, 5, 1056, 20);
    }
}
