/* check_int4.c - checks matrix products with int4 weights: the reference against float64, within a
 * bound derived for digits, and every tier against the reference, to the bit; and how weights are
 * rounded. */
#include "kernels/avx2/avx2.h"
#include "kernels/int4.h"
#include "kernels/neon/neon.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Sizes at the edges of groups, panels and register tiles; then layers of real models. */
static const struct {
    int rows, n, k, group;
} edges[] = {
    {1, 16, 8, 8},        {2, 16, 96, 64},       {3, 48, 160, 64},     {4, 64, 128, 128},
    {5, 80, 136, 128},    {7, 96, 256, 32},      {8, 112, 72, 8},      {9, 144, 264, 128},
    {13, 16, 504, 504},   {29, 272, 88, 40},     {1, 2560, 2048, 128}, {33, 1024, 1024, 128},
    {17, 80, 256, 128},   {60, 304, 272, 264},   {107, 48, 136, 32},   {19, 560, 8192, 128},
    {16, 32, 9000, 4504}, {1, 16, 90000, 90000}, {9, 48, 8200, 4096},  {12, 32, 200, 32},
    {21, 64, 320, 64},    {18, 48, 2048, 2048}}; /* pieces of k */

enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 30 };

/* Pack words of any bits, with scales from float16's subnormals up and zeros from 0 to 16. */
static unsigned char *packed(struct conform *c, int n, int k, int group)
{
    size_t size = tec_int4_size(n, k, group), panel = tec_int4_panel(k, group);
    unsigned char *w = conform_buf(c, size, 1);
    for (size_t i = 0; i < size; i++)
        w[i] = (unsigned char)conform_int(0, 255);
    for (int p = 0; p < n / 16; p++)
        for (int g = 0; g * group < k; g++) {
            unsigned char *at = w + (size_t)p * panel + tec_int4_group(g, group);
            for (int i = 0; i < 16; i++) {
                uint16_t scale = (uint16_t)(conform_int(0, 9) ? conform_int(0x1000, 0x3c00)
                                                              : conform_int(0, 0x3ff));
                scale = (uint16_t)(conform_int(0, 3) ? scale : scale | 0x8000);
                memcpy(at + 2 * (size_t)i, &scale, sizeof scale);
                at[TEC_INT4_ZEROS + i] = (unsigned char)conform_int(0, 16);
            }
        }
    return w;
}

/* Give any permutation of k for each of two orders, and the order of each panel. */
static void give_order(struct conform *c, struct tec_gemm_args *a)
{
    int *order = conform_ints(c, 2 * (size_t)a->k, 0), *of = conform_ints(c, (size_t)a->n / 16, 0);
    for (int o = 0; o < 2; o++)
        for (int i = 0; i < a->k; i++) {
            int j = conform_int(0, i);
            order[o * a->k + i] = order[o * a->k + j];
            order[o * a->k + j] = i;
        }
    for (int p = 0; p < a->n / 16; p++)
        of[p] = conform_int(0, 1);
    a->order = order;
    a->order_of = conform_int(0, 3) ? of : NULL;
}

static double weight(const struct tec_gemm_args *a, int k, int n)
{
    const unsigned char *at = (const unsigned char *)a->w +
                              (size_t)(n / 16) * tec_int4_panel(a->k, a->group) +
                              tec_int4_group(k / a->group, a->group);
    uint16_t scale;
    uint32_t word;
    memcpy(&scale, at + 2 * (size_t)(n % 16), sizeof scale);
    memcpy(&word, at + (size_t)(1 + k % a->group / 8) * 64 + 4 * (size_t)(n % 16), sizeof word);
    return ((int)(word >> (4 * (k % 8)) & 15U) - (int)at[TEC_INT4_ZEROS + n % 16]) *
           (double)tec_half_float(scale);
}

/* What half a unit is of a group's largest x at most: 127 * 65793 units are 1.993 * 2^22 of them,
 * 127 * 257 are 1.992 * 2^14. */
static double half_unit(const struct tec_gemm_args *a, double largest)
{
    return ldexp(largest, a->digits == 2 ? -15 : -23) * 1.005;
}

/* Compute an element in float64, the size of what is summed for it, and the possible error of half
 * a unit in each group's digits, all times the gate. */
static double exact(const struct tec_gemm_args *a, const float *before, int r, int n, double *size,
                    double *cut)
{
    double sum = 0.0, largest = 0.0, weights = 0.0;
    const int *order = a->order;
    if (order && a->order_of)
        order += (size_t)a->order_of[n / 16] * (size_t)a->k;
    *size = *cut = 0.0;
    for (int k = 0; k < a->k; k++) {
        double x = (double)a->x[(size_t)r * (size_t)a->ldx + (size_t)(order ? order[k] : k)];
        sum += x * weight(a, k, n);
        *size += fabs(x * weight(a, k, n));
        largest = fmax(largest, fabs(x));
        weights += fabs(weight(a, k, n));
        if ((k + 1) % a->group == 0 || k + 1 == a->k) {
            *cut += half_unit(a, largest) * weights;
            largest = weights = 0.0;
        }
    }
    double bias = a->bias ? (double)a->bias[n] : 0.0, gate = a->gate ? (double)a->gate[n] : 1.0;
    *size = (*size + fabs(bias)) * fabs(gate);
    *cut *= fabs(gate);
    return gate * (sum + bias) +
           (a->add ? (double)before[(size_t)r * (size_t)a->ldy + (size_t)n] : 0.0);
}

/* The sums of digits are exact; each group is rounded five times and added once, then bias, gate
 * and add round. What is summed is x as its digits are, larger by no more than what they cut. */
static double digits(const struct tec_gemm_args *a, double size, double cut, double want)
{
    int steps = a->k / a->group + 10;
    return cut + (steps * (size + cut) + 4.0 * fabs(want)) * (double)FLT_EPSILON + ldexp(1.0, -120);
}

static void check_one(struct conform *c, const struct tec_gemm_args *a, const float *before, int r,
                      int n)
{
    double size, cut, want = exact(a, before, r, n, &size, &cut);
    size_t at = (size_t)r * (size_t)a->ldy + (size_t)n;
    conform_close(c, (double)((const float *)c->want[0])[at], want, digits(a, size, cut, want),
                  "reference [%dx%dx%d] groups of %d row %d column %d", a->max_rows, a->n, a->k,
                  a->group, r, n);
}

/* Fill a row of x: with one size; with sizes that differ between and within groups; or at the edge
 * of what the digits hold. */
static void fill_x(float *x, int k, bool two)
{
    int family = conform_int(0, 2);
    conform_fill(x, (size_t)k, CONFORM_NORMAL, 1.0F);
    for (int i = 0; i < k && family == 1; i++)
        x[i] = ldexpf(x[i], i / 24 % 3 ? conform_int(-3, 3) : conform_int(-30, 20));
    for (int i = 0; i < k && family == 2; i++) {
        uint32_t bits = (two ? 0x3f7efefdU : 0x3f7efefcU) + (uint32_t)conform_int(0, 5) +
                        ((uint32_t)(i / 40 % 5) << 23);
        memcpy(&x[i], &bits, sizeof bits);
        x[i] = conform_int(0, 1) ? x[i] : -x[i];
    }
}

/* Check one group of scale 1, whose sum of x in whole units is computed here in another way. Only
 * three roundings are left, so that a missing digit, or one cut off instead of rounded, is seen. */
static void one_group(struct conform *c, int k, int family, int digits)
{
    enum { ROWS = 3, N = 16 };
    float *x = conform_buf(c, (size_t)ROWS * (size_t)k, sizeof *x), y[ROWS * N];
    struct tec_gemm_args a = {.x = x, .ldx = k, .ldy = N, .n = N, .k = k, .group = k, .y = y};
    double largest = digits == 2 ? 127.0 * 257.0 : 127.0 * 65793.0;
    unsigned char *w = packed(c, N, k, k);
    for (int i = 0; i < N; i++)
        memcpy(w + 2 * (size_t)i, (const unsigned char[]){0x00, 0x3c}, 2);
    a.w = w;
    a.digits = digits;
    a.max_rows = ROWS;
    a.rows = conform_ints(c, 1, ROWS);
    for (int i = 0; i < ROWS; i++)
        fill_x(x + (size_t)i * (size_t)k, k, digits == 2);
    for (int i = 0; i < ROWS * k && family > 0; i++)
        x[i] = family == 1 ? ldexpf(x[i], -140) : family == 2 ? ldexpf(x[i], 100) : -0.0F;
    c->ref->gemm_int4(&a, (struct tec_part){0, 1});
    for (int i = 0; i < ROWS * N; i++) {
        const float *row = x + (size_t)(i / N) * (size_t)k;
        double most = 0.0, sum = 0.0, size = 0.0;
        int finer = 126;
        for (int j = 0; j < k; j++) /* not fmax: gcc 12 for aarch64 fails on a loop of it */
            most = fabs((double)row[j]) > most ? fabs((double)row[j]) : most;
        while (rint(ldexp(most, finer)) > largest)
            finer--;
        for (int j = 0; j < k; j++) {
            sum += rint(ldexp((double)row[j], finer)) * weight(&a, j, i % N);
            size += fabs(rint(ldexp((double)row[j], finer)) * weight(&a, j, i % N));
        }
        conform_close(
            c, (double)y[i], ldexp(sum, -finer), ldexp(1.5 * (double)FLT_EPSILON * size, -finer),
            "family %d, k %d, %d digits: row %d column %d", family, k, digits, i / N, i % N);
    }
    conform_end(c);
}

/* A row that holds NaN or infinity must give NaN, and the other rows must not change. */
static void not_finite(struct conform *c, int n_rows)
{
    enum { N = 48, K = 80 };
    float *x = conform_normal(c, (size_t)n_rows * K);
    struct tec_gemm_args a = {.x = x, .ldx = K, .ldy = N, .n = N, .k = K, .group = 32};
    float *y[2] = {conform_buf(c, (size_t)n_rows * N, sizeof(float)),
                   conform_buf(c, (size_t)n_rows * N, sizeof(float))};
    a.w = packed(c, N, K, a.group);
    a.max_rows = n_rows;
    a.rows = conform_ints(c, 1, n_rows);
    for (int i = 0; i < 2; i++) {
        a.y = y[i];
        c->fast->gemm_int4(&a, (struct tec_part){0, 1});
        x[0 * K + 40] = INFINITY;
        x[2 * K + 7] = NAN;
    }
    for (int i = 0; i < n_rows * N; i++) {
        bool bad = i / N == 0 || i / N == 2;
        if (bad ? !isnan(y[1][i]) : memcmp(&y[0][i], &y[1][i], sizeof(float)) != 0)
            conform_fail(c, "row %d column %d is %g", i / N, i % N, (double)y[1][i]);
    }
    conform_end(c);
}

static void shape(struct conform *c, int rows, int n, int k, int group)
{
    struct tec_gemm_args a = {.max_rows = rows, .n = n, .k = k, .group = group};
    a.ldx = conform_ld(k);
    a.ldy = conform_ld(n);
    a.add = conform_int(0, 1);
    a.digits = 2 * conform_int(0, 1);
    size_t size = (size_t)rows * (size_t)a.ldy;
    float *x = conform_buf(c, (size_t)rows * (size_t)a.ldx, sizeof *x); /* NaN beyond k */
    for (int r = 0; r < rows; r++)
        fill_x(x + (size_t)r * (size_t)a.ldx, k, a.digits == 2);
    a.x = x;
    a.w = packed(c, n, k, group);
    a.bias = conform_int(0, 1) ? conform_normal(c, (size_t)n) : NULL;
    a.gate = conform_int(0, 2) ? NULL : conform_normal(c, (size_t)n);
    if (conform_int(0, 1))
        give_order(c, &a);
    a.y = conform_buf(c, size, sizeof *a.y);
    if (a.add)
        conform_fill(a.y, size, CONFORM_NORMAL, 1.0F);
    float *before = conform_buf(c, size, sizeof *before);
    memcpy(before, a.y, size * sizeof *before);
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .outs = 1, .full = true};
    call.out[0] = (struct conform_out){a.y, rows, (size_t)n * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < rows; r++) { /* exact sums: the same bits */
        const char *got = (const char *)c->got[0], *want = (const char *)c->want[0];
        size_t at = (size_t)r * (size_t)a.ldy * sizeof(float);
        if (memcmp(got + at, want + at, (size_t)n * sizeof(float)) != 0)
            conform_fail(c, "[%dx%dx%d] groups of %d row %d is not the reference's", rows, n, k,
                         group, r);
    }
    for (int i = 0; i < 20; i++)
        check_one(c, &a, before, conform_int(0, rows - 1), conform_int(0, n - 1));
    conform_end(c);
}

/* A row has the same bytes whatever capacity was planned; x and y hold the live rows alone. */
static void capacities(struct conform *c, int n, int k, int group, bool ordered)
{
    enum { LIVE = 40 };
    static const int most[] = {LIVE, 1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 300, 9000};
    int *live = conform_ints(c, 1, 0);
    size_t size = (size_t)LIVE * (size_t)n;
    float *y[2] = {conform_buf(c, size, sizeof(float)), conform_buf(c, size, sizeof(float))};
    struct tec_gemm_args a = {.rows = live, .ldx = conform_ld(k), .ldy = n, .n = n, .k = k};
    size_t groups = ((size_t)k + (size_t)group - 1) / (size_t)group; /* digits of 128 rows */
    size_t room = 128 * groups * (((size_t)group + 31) / 32 * 96 + sizeof(float));
    a.group = group;
    a.digits = k % 16 ? 2 : 0;
    float *x = conform_normal(c, (size_t)LIVE * (size_t)a.ldx);
    a.x = x;
    a.w = packed(c, n, k, group);
    if (ordered)
        give_order(c, &a);
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        a.max_rows = most[i];
        a.y = y[i > 0];
        *live = a.max_rows < LIVE ? a.max_rows : LIVE;
        cuda_tier_plan_for(0, i % 3 ? 0 : 1);
        cuda_tier_room(0, i % 2 ? room : 0);
        c->fast->gemm_int4(&a, (struct tec_part){0, 1});
        if (i && memcmp(y[0], y[1], (size_t)*live * (size_t)n * sizeof(float)) != 0)
            conform_fail(c, "k %d, groups of %d: planned for %d rows, a row is not the same", k,
                         group, a.max_rows);
    }
    cuda_tier_plan_for(0, 0);
    cuda_tier_room(0, 0);
    conform_end(c);
}

/* Rows that go in parts, as there is room for the digits of 128 at once, have the same bytes. */
static void parts(struct conform *c, int group, int digits)
{
    enum { ROWS = 150, N = 48, K = 200 };
    size_t groups = ((size_t)K + (size_t)group - 1) / (size_t)group;
    size_t room = 128 * groups * (((size_t)group + 31) / 32 * 96 + sizeof(float));
    struct tec_gemm_args a = {.max_rows = ROWS, .ldx = K, .ldy = N, .n = N, .k = K};
    float *y[2] = {conform_buf(c, (size_t)ROWS * N, sizeof(float)),
                   conform_buf(c, (size_t)ROWS * N, sizeof(float))};
    a.x = conform_normal(c, (size_t)ROWS * K);
    a.w = packed(c, N, K, group);
    a.group = group;
    a.digits = digits;
    a.rows = conform_ints(c, 1, ROWS);
    for (int i = 0; i < 2; i++) {
        a.y = y[i];
        cuda_tier_room(0, i ? room : 0);
        c->fast->gemm_int4(&a, (struct tec_part){0, 1});
    }
    cuda_tier_room(0, 0);
    if (memcmp(y[0], y[1], (size_t)ROWS * N * sizeof(float)) != 0)
        conform_fail(c, "groups of %d, %d digits: in parts rows are not the same", group, digits);
    conform_end(c);
}

/* A magnitude to float16, to nearest even. */
static double half(double x)
{
    int exponent;
    frexp(x, &exponent);
    exponent = exponent < -13 ? -13 : exponent;
    return ldexp(rint(ldexp(x, 11 - exponent)), exponent - 11);
}

/* The squared error of a group of weights over `part` of their range. Where the scale or the zero
 * lies next to the middle of two values, float32 may round it to either: `side`, -1 or 1, moves
 * both by more than float32's own error. */
static double error_over(const float *w, int count, double low, double high, double part, int side)
{
    double off = 1.0 + side * 4.0 * (double)FLT_EPSILON;
    double scale = half((high - low) * part / 15.0 * off), sum = 0.0;
    double zero = scale > 0.0 ? fmin(rint(-low * part / scale * off), 15.0) : 0.0;
    for (int i = 0; i < count; i++) {
        double nibble = scale > 0.0 ? rint((double)w[i] / scale + zero) : 0.0;
        sum += pow((double)w[i] - (fmin(fmax(nibble, 0.0), 15.0) - zero) * scale, 2.0);
    }
    return sum;
}

/* What is left of a group is what the best of the ranges leaves that are tried. */
static void check_group(struct conform *c, const struct tec_gemm_args *a, const float *w, int n,
                        int first)
{
    int count = a->k - first < a->group ? a->k - first : a->group;
    double low = 0.0, high = 0.0, got = 0.0, least = HUGE_VAL, most = HUGE_VAL;
    for (int i = 0; i < count; i++) {
        low = (double)w[first + i] < low ? (double)w[first + i] : low;
        high = (double)w[first + i] > high ? (double)w[first + i] : high;
        got += pow((double)w[first + i] - weight(a, first + i, n), 2.0);
    }
    for (int part = 20; part <= 32; part++) {
        double below = error_over(w + first, count, low, high, part / 32.0, -1);
        double above = error_over(w + first, count, low, high, part / 32.0, 1);
        least = fmin(least, fmin(below, above));
        most = fmin(most, fmax(below, above));
    }
    conform_close(c, got, fmin(fmax(got, least), most),
                  1e-4 * least + 1e-12 * (high - low) * (high - low),
                  "groups of %d: squared error of column %d from %d on", a->group, n, first);
}

/* Weights of every size, rounded: whole numbers of 16 steps and zeros are kept, and a group leaves
 * no larger an error than it must. */
static void rounding(struct conform *c, int group)
{
    enum { N = 37, K = 136 };
    float *src = conform_normal(c, (size_t)N * K);
    size_t size = tec_int4_size(48, K, group);
    unsigned char *w = conform_buf(c, size, 1), *parts = conform_buf(c, size, 1);
    struct tec_gemm_args a = {.w = w, .k = K, .group = group};
    for (int i = 0; i < K; i++) {
        src[i] = (float)(i % 8 < 2 ? i % 8 * 15 - 5 : i * 11 / 8 % 16 - 5) * 0.25F;
        src[K + i] = 0.0F;
        src[2 * K + i] *= 0x1p-22F; /* scales below float16's normal range */
        src[3 * K + i] = (float)(i % 2 ? TEC_INT4_MOST : -TEC_INT4_MOST);
        src[4 * K + i] = fabsf(src[4 * K + i]) + 1.0F;
        src[5 * K + i] = -src[4 * K + i];
    }
    memset(w, 0, size);
    memset(parts, 0, size);
    tec_int4_pack(w, N, K, group, 0, N, src);
    tec_int4_pack(parts, N, K, group, 0, 16, src);
    tec_int4_pack(parts, N, K, group, 16, N - 16, src + (size_t)16 * K);
    if (memcmp(w, parts, size) != 0)
        conform_fail(c, "packed in parts it is not the same");
    for (int k = 0; k < K; k++) {
        conform_close(c, weight(&a, k, 0), (double)src[k], 0.0, "whole number %d", k);
        conform_close(c, weight(&a, k, 1), 0.0, 0.0, "zero %d", k);
        conform_close(c, weight(&a, k, N), 0.0, 0.0, "weight %d of a column that pads", k);
    }
    for (int n = 0; n < N; n++)
        for (int first = 0; first < K; first += group)
            check_group(c, &a, src + (size_t)n * K, n, first);
    conform_end(c);
}

static void products(struct conform *c)
{
    capacities(c, 48, 520, 128, false);
    capacities(c, 144, 264, 40, true);
    capacities(c, 16, 96, 96, false);
    capacities(c, 48, 344, 168, true);
    capacities(c, 80, 8 * conform_int(20, 70), 8 * conform_int(1, 20), conform_int(0, 1));
    parts(c, 40, 2);
    parts(c, 200, 3);
    for (int rows = 3; rows < 100; rows *= 3) /* 3, 9, 27, 81 */
        not_finite(c, rows);
    for (int i = 0; i < EDGES; i++)
        shape(c, edges[i].rows, conform_scale(c, edges[i].n, 160),
              conform_scale(c, edges[i].k, 512) / 8 * 8, edges[i].group);
    for (int i = 0; i < conform_few(c, RANDOM); i++) {
        int k = 8 * conform_int(1, 60), group = 8 * conform_int(1, k / 8);
        shape(c, conform_int(1, 20), 16 * conform_int(1, 12), k, group);
    }
}

/* The kernel that a tier has for processors without products of matrices of bytes, or dot products
 * of them, in the place of that with them. False: it has none. */
static bool without(struct tec_kernels *table)
{
    const struct tec_kernels all = *table;
#if defined(__x86_64__)
    if (all.gemm_int4 == tec_vnni_gemm_int4_avx2)
        table->gemm_int4 = tec_gemm_int4_avx2;
#elif defined(__aarch64__)
    if (all.gemm_int4 == tec_gemm_int4_mm_neon)
        table->gemm_int4 = tec_gemm_int4_dot_neon;
    if (all.gemm_int4 == tec_gemm_int4_dot_neon)
        table->gemm_int4 = tec_gemm_int4_neon;
#endif
    return table->gemm_int4 != all.gemm_int4;
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

void conform_gemm_int4(struct conform *c)
{
    rounding(c, TEC_INT4_GROUP);
    rounding(c, 16);
    rounding(c, 136);
    for (int family = 0; family < 4; family++)
        for (int k = 8; k <= 264; k *= 3) {
            one_group(c, k, family, 0);
            one_group(c, k, family, 2);
        }
    products(c);
    plain_products(c);
}

void conform_repetition_penalty(struct conform *c)
{
    for (int i = 0; i < 40; i++) {
        int rows = conform_int(1, 9), cols = i < 4 ? 31 + i : conform_int(1, 6000);
        struct tec_repetition_penalty_args a = {.max_rows = rows, .cols = cols, .penalty = 1.3F};
        a.ld = conform_ld(cols);
        a.words = (cols + 31) / 32 + conform_int(0, 2);
        size_t words = (size_t)rows * (size_t)a.words;
        a.x = conform_buf(c, (size_t)rows * (size_t)a.ld, sizeof *a.x);
        conform_fill(a.x, (size_t)rows * (size_t)a.ld, CONFORM_NORMAL, 3.0F);
        a.used = conform_buf(c, words, sizeof *a.used);
        for (size_t w = 0; w < words; w++)
            a.used[w] = conform_int(0, 2) ? 0 : (uint32_t)conform_int(0, 1 << 30) * 5U;
        int *token = conform_ints(c, (size_t)rows, 0);
        for (int r = 0; r < rows; r++)
            token[r] = conform_int(-2, cols + 1);
        a.token = token;
        a.rows = conform_live(c, rows);
        float *before = conform_buf(c, (size_t)rows * (size_t)a.ld, sizeof *before);
        memcpy(before, a.x, (size_t)rows * (size_t)a.ld * sizeof *before);
        struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .outs = 2, .full = true};
        call.out[0] =
            (struct conform_out){a.x, rows, (size_t)cols * 4, (size_t)a.ld * 4, NULL, 0, 1};
        call.out[1] = (struct conform_out){
            a.used, rows, (size_t)a.words * 4, (size_t)a.words * 4, NULL, 0, 1};
        conform_run(c, &call);
        const uint32_t *seen = c->want[1];
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < cols; k++) {
                size_t at = (size_t)r * (size_t)a.ld + (size_t)k;
                bool in = seen[(size_t)r * (size_t)a.words + (size_t)(k / 32)] >> (k % 32) & 1U;
                float x = before[at], want = !in ? x : x < 0 ? x * a.penalty : x / a.penalty;
                conform_close(c, (double)((const float *)c->want[0])[at], (double)want, 0.0,
                              "reference row %d column %d", r, k);
                conform_close(c, (double)((const float *)c->got[0])[at], (double)want, 0.0,
                              "row %d column %d", r, k);
            }
        for (int r = 0; r < rows; r++)
            if (token[r] >= 0 && token[r] < cols &&
                !(seen[(size_t)r * (size_t)a.words + (size_t)(token[r] / 32)] >> (token[r] % 32) &
                  1U))
                conform_fail(c, "row %d: its newest token is not in the set", r);
        conform_same(c, 1, words * 4, "sets");
        conform_end(c);
    }
}
