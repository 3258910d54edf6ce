/* check_tree.c - logits_mask, log_prob: what trees of tokens need of a row of logits. */
#include "kernels/bf16.h"
#include "tests/kernels/conform.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { PLACES = 5, MOST = 7 };

/* Entries of each place: from none to a few ids, ascending. */
static struct tec_trie make_trie(struct conform *c, int cols)
{
    int *first = conform_ints(c, PLACES + 1, 0);
    int *id = conform_ints(c, (size_t)PLACES * MOST, 0);
    int *next = conform_ints(c, (size_t)PLACES * MOST, 0);
    int n = 0;
    for (int p = 0; p < PLACES; p++) {
        int most = p == 2 ? 0 : conform_int(1, MOST), at = conform_int(0, 2);
        for (int e = 0; e < most && at < cols; e++) {
            id[n] = at;
            next[n++] = conform_int(0, PLACES - 1);
            at += conform_int(1, 1 + cols / MOST);
        }
        first[p + 1] = n;
    }
    return (struct tec_trie){.n = PLACES, .first = first, .id = id, .next = next};
}

static bool listed(const struct tec_trie *p, int place, int id)
{
    for (int e = p->first[place]; e < p->first[place + 1]; e++)
        if (p->id[e] == id)
            return true;
    return false;
}

static float allowed(const struct tec_logits_mask_args *a, int r, int k, float x)
{
    int place = a->place[r];
    const struct tec_trie *p = &a->trie;
    if (place < 0 || place >= p->n || p->first[place] == p->first[place + 1])
        return x;
    if (!listed(p, place, k))
        return -INFINITY;
    return isnan(x) || x == -INFINITY ? -FLT_MAX : x;
}

static void logits_mask_shape(struct conform *c, int i)
{
    int rows = conform_int(1, 9), cols = i < 4 ? 1 + i : conform_int(1, 3000);
    struct tec_logits_mask_args a = {.max_rows = rows, .cols = cols, .ld = conform_ld(cols)};
    size_t size = (size_t)rows * (size_t)a.ld;
    a.x = conform_buf(c, size, sizeof *a.x);
    conform_fill(a.x, size, CONFORM_NORMAL, 3.0F);
    for (size_t k = 0; k < size; k += 3)
        a.x[k] = k % 2 ? NAN : -INFINITY;
    float *before = conform_buf(c, size, sizeof *before);
    memcpy(before, a.x, size * sizeof *before);
    a.trie = make_trie(c, cols);
    int *place = conform_ints(c, (size_t)rows, 0);
    for (int r = 0; r < rows; r++)
        place[r] = conform_int(-1, PLACES);
    a.place = place;
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a.x, rows, (size_t)cols * 4, (size_t)a.ld * 4, NULL, 0, 1};
    conform_run(c, &call);
    const float *got = c->got[0], *ref = c->want[0];
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            size_t at = (size_t)r * (size_t)a.ld + (size_t)k;
            float want = allowed(&a, r, k, before[at]);
            if (memcmp(&got[at], &want, sizeof want) != 0 ||
                memcmp(&ref[at], &want, sizeof want) != 0)
                conform_fail(c, "[%dx%d] row %d column %d: %g, reference %g, want %g", rows, cols,
                             r, k, (double)got[at], (double)ref[at], (double)want);
        }
    conform_end(c);
}

void conform_logits_mask(struct conform *c)
{
    for (int i = 0; i < 40; i++)
        logits_mask_shape(c, i);
}

/* In long double. */
static double exact(const struct tec_log_prob_args *a, int r, int e)
{
    const float *x = a->x + (size_t)r * (size_t)a->ld;
    long double sum = 0.0L, top = -HUGE_VALL;
    if (a->id[e] < 0 || a->id[e] >= a->cols)
        return -HUGE_VAL;
    for (int k = 0; k < a->cols; k++)
        top = fmaxl(top, (long double)(a->round ? tec_bf16_round(x[k]) : x[k]));
    for (int k = 0; k < a->cols; k++)
        sum += expl((long double)(a->round ? tec_bf16_round(x[k]) : x[k]) - top);
    float own = x[a->id[e]];
    return (double)((long double)(a->round ? tec_bf16_round(own) : own) - top - logl(sum));
}

/* An exponential is within 4 units of 2^-24 and so is their sum, whose logarithm is off by as much;
 * then one rounding. */
static void log_prob_shape(struct conform *c, int i)
{
    int rows = conform_int(1, 6), cols = i < 20 ? 1 + i : conform_int(1, conform_int(20, 5000));
    int each = conform_int(1, MOST), skip = conform_int(0, 3) * each;
    struct tec_log_prob_args a = {.max_rows = rows,
                                  .cols = cols,
                                  .ld = conform_ld(cols),
                                  .max_entries = skip + rows * each,
                                  .round = conform_int(0, 1)};
    size_t size = (size_t)rows * (size_t)a.ld;
    float *x = conform_buf(c, size, sizeof *x);
    conform_fill(x, size, (enum conform_family)(i % CONFORM_FAMILIES), 5.0F);
    int *first = conform_ints(c, (size_t)rows + 1, 0);
    int *id = conform_ints(c, (size_t)a.max_entries, 0);
    for (int r = 0; r <= rows; r++)
        first[r] = skip + r * each;
    for (int e = 0; e < a.max_entries; e++)
        id[e] =
            conform_int(0, 9) ? conform_int(0, cols - 1) : conform_int(-1, 0) * (cols + 1) + cols;
    a.x = x;
    a.first = first;
    a.id = id;
    a.y = conform_buf(c, (size_t)a.max_entries, sizeof *a.y);
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
    size_t row = (size_t)each * 4;
    call.out[0] = (struct conform_out){a.y, rows, row, row, NULL, skip / each, 1};
    conform_run(c, &call);
    for (int r = 0; r < rows; r++)
        for (int e = first[r]; e < first[r + 1]; e++) {
            double want = exact(&a, r, e), slack = ldexp(fabs(want), -24);
            double got = (double)((const float *)c->got[0])[e];
            double ref = (double)((const float *)c->want[0])[e];
            conform_close(c, ref, want, slack + 1e-12, "reference [%dx%d] entry %d", rows, cols, e);
            conform_close(c, got, want, slack + ldexp(4, -24), "[%dx%d] entry %d", rows, cols, e);
        }
    conform_end(c);
}

static void bench(struct conform *c)
{
    int rows = 64, cols = conform_scale(c, 151936, 4000);
    struct tec_log_prob_args a = {
        .max_rows = rows, .cols = cols, .ld = conform_ld(cols), .max_entries = rows};
    size_t size = (size_t)rows * (size_t)a.ld;
    float *x = conform_buf(c, size, sizeof *x);
    conform_fill(x, size, CONFORM_NORMAL, 5.0F);
    int *first = conform_ints(c, (size_t)rows + 1, 0);
    for (int r = 0; r <= rows; r++)
        first[r] = r;
    a.x = x;
    a.first = first;
    a.id = conform_ints(c, (size_t)rows, 3);
    a.y = conform_buf(c, (size_t)rows, sizeof *a.y);
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .outs = 1};
    call.out[0] = (struct conform_out){a.y, rows, 4, 4, NULL, 0, 1};
    conform_time(c, "64x151936", &call, (double)rows * cols * 4, 0.0);
    conform_end(c);
}

void conform_log_prob(struct conform *c)
{
    for (int i = 0; i < 60; i++)
        log_prob_shape(c, i);
    if (c->bench)
        bench(c);
}
