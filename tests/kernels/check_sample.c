/* check_sample.c - checks the sampling of tokens: what the filter leaves, against a sort, and how
 * often tokens are drawn, against their probabilities. */
#include "kernels/bf16.h"
#include "kernels/sample.h"
#include "tests/kernels/conform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Find by sorting the smallest value that may be drawn. `near` receives how far the sum is from the
 * share at which it ends, relative to the whole: there float64 and fixed point may differ. */
static float least_of(const struct tec_sample_args *a, int r, float *y, double *near)
{
    int n = a->cols, left = n;
    double sum = 0.0, all = 0.0;
    qsort(y, (size_t)n, sizeof *y, by_size);
    if (a->top_k[r] > 0 && a->top_k[r] < n)
        left = a->top_k[r];
    float least = y[left - 1];
    while (left < n && y[left] >= least)
        left++;
    *near = 1.0;
    for (int i = 0; i < left; i++)
        all += exp((double)y[i] - (double)y[0]);
    for (int i = 0; i < left && a->top_p[r] < 1.0F; i++) {
        sum += exp((double)y[i] - (double)y[0]) / all;
        if (i + 1 < left && y[i + 1] >= y[i])
            continue; /* equal values are kept or dropped together */
        *near = fmin(*near, fabs(sum - (double)a->top_p[r]));
        if (sum >= (double)a->top_p[r])
            return y[i];
    }
    return least;
}

static void check_row(struct conform *c, const struct tec_sample_args *a, const float *before,
                      int r)
{
    const float *got = (const float *)c->got[0] + (size_t)r * (size_t)a->ld;
    const float *want = (const float *)c->want[0] + (size_t)r * (size_t)a->ld;
    float *y = conform_buf(c, (size_t)a->cols, sizeof *y), t = a->temperature[r];
    float *sorted = conform_buf(c, (size_t)a->cols, sizeof *sorted);
    double near = 1.0;
    for (int k = 0; k < a->cols; k++) {
        float x = before[(size_t)r * (size_t)a->ld + (size_t)k];
        x = a->round ? tec_bf16_round(x) : x;
        sorted[k] = y[k] = t > 0 ? x / t : x;
    }
    float least = t > 0 ? least_of(a, r, sorted, &near) : -INFINITY;
    for (int k = 0; k < a->cols; k++) {
        double noise =
            t > 0 ? (double)tec_sample_noise(a->seed + 2 * (size_t)r, a->pos[r], k) : 0.0;
        double exact = y[k] < least ? -HUGE_VAL : (double)y[k] + noise;
        double bound = t > 0 ? (fabs(noise) + fabs((double)y[k]) + 1.0) * ldexp(1, -20) : 0.0;
        if (near > 1e-6 || y[k] > least) {
            conform_close(c, (double)got[k], exact, bound, "row %d column %d", r, k);
            conform_close(c, (double)want[k], exact, bound, "reference row %d column %d", r, k);
        }
    }
}

/* Compare how often each of a few tokens is drawn with its probability, within 6 standard
 * deviations. */
static void check_draws(struct conform *c)
{
    enum { COLS = 7, ROWS = 4000 };
    static const float logits[COLS] = {0.0F, 1.0F, -1.0F, 2.0F, 0.5F, -3.0F, 1.0F};
    struct tec_sample_args a = {.max_rows = ROWS, .cols = COLS, .ld = 16};
    float *x = conform_buf(c, (size_t)ROWS * 16, sizeof *x);
    float *t = conform_buf(c, ROWS, sizeof *t), *p = conform_buf(c, ROWS, sizeof *p);
    uint32_t *seed = conform_buf(c, (size_t)ROWS * 2, sizeof *seed);
    int *pos = conform_ints(c, ROWS, 0), count[COLS] = {0};
    double sum = 0.0;
    for (int r = 0; r < ROWS; r++) {
        memcpy(x + (size_t)r * 16, logits, sizeof logits);
        t[r] = 0.8F;
        p[r] = 1.0F;
        pos[r] = r;
        seed[2 * r] = 17;
        seed[2 * r + 1] = 5;
    }
    a.x = x;
    a.temperature = t;
    a.top_p = p;
    a.top_k = conform_ints(c, ROWS, 0);
    a.seed = seed;
    a.pos = pos;
    a.rows = conform_live(c, ROWS);
    tec_kernel_infos[c->id].run(c->fast, &a, (struct tec_part){0, 1});
    for (int r = 0; r < ROWS; r++) {
        int best = 0;
        for (int k = 1; k < COLS; k++)
            best = x[(size_t)r * 16 + (size_t)k] > x[(size_t)r * 16 + (size_t)best] ? k : best;
        count[best]++;
    }
    for (int k = 0; k < COLS; k++)
        sum += exp((double)logits[k] / 0.8);
    for (int k = 0; k < COLS; k++) {
        double q = exp((double)logits[k] / 0.8) / sum;
        conform_close(c, count[k], ROWS * q, 6.0 * sqrt(ROWS * q * (1.0 - q)) + 1.0,
                      "draws of token %d", k);
    }
    conform_end(c);
}

static void check_shape(struct conform *c, int i)
{
    int rows = conform_int(1, 5), cols = i < 3 ? 1 + i : conform_int(1, conform_int(2, 3000));
    struct tec_sample_args a = {.max_rows = rows, .cols = cols, .round = conform_int(0, 1)};
    a.ld = conform_ld(cols);
    size_t size = (size_t)rows * (size_t)a.ld;
    float *t = conform_buf(c, (size_t)rows, sizeof *t),
          *p = conform_buf(c, (size_t)rows, sizeof *p);
    float *before = conform_buf(c, size, sizeof *before);
    uint32_t *seed = conform_buf(c, (size_t)rows * 2, sizeof *seed);
    int *pos = conform_ints(c, (size_t)rows, 0), *top_k = conform_ints(c, (size_t)rows, 0);
    a.x = conform_buf(c, size, sizeof *a.x);
    conform_fill(a.x, size, (enum conform_family)(i % CONFORM_FAMILIES), 3.0F);
    memcpy(before, a.x, size * sizeof *before);
    for (int r = 0; r < rows; r++) {
        t[r] = conform_int(0, 3) ? 0.1F * (float)conform_int(1, 20) : 0.0F;
        p[r] = conform_int(0, 2) ? 0.05F * (float)conform_int(0, 19) : 1.0F;
        top_k[r] = conform_int(0, 1) ? conform_int(1, cols + 3) : 0;
        pos[r] = conform_int(0, 1 << 20);
        seed[2 * r] = (uint32_t)conform_int(0, 1 << 30);
        seed[2 * r + 1] = (uint32_t)conform_int(0, 1 << 30);
    }
    a.temperature = t;
    a.top_p = p;
    a.top_k = top_k;
    a.seed = seed;
    a.pos = pos;
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a.x, rows, (size_t)cols * 4, (size_t)a.ld * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < rows; r++)
        check_row(c, &a, before, r);
    conform_end(c);
}

void conform_sample(struct conform *c)
{
    for (int i = 0; i < 40; i++)
        check_shape(c, i);
    check_draws(c);
}
