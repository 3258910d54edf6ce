/* check_attention.c - holds attention of every tier to a softmax in float64 with derived bounds,
 * and checks that a row keeps its bytes in any company. */
#include "tests/kernels/attention_case.h"
#include "tests/kernels/cuda_tier.h"

#include "kernels/attention.h"
#include "kernels/bf16.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct case_shape edges[] = {{1, 1, 1, 1, 1, 1, CASE_ALL, false, false},
                                          {1, 3, 7, 2, 1, 9, CASE_ANY, false, false},
                                          {2, 9, 63, 2, 2, 14, CASE_ANY, false, false},
                                          {2, 5, 64, 4, 2, 22, CASE_CAUSAL, false, false},
                                          {3, 4, 65, 8, 1, 16, CASE_ALL, true, false},
                                          {2, 30, 129, 3, 1, 72, CASE_CAUSAL, false, false},
                                          {1, 70, 100, 16, 16, 72, CASE_ALL, true, false},
                                          {8, 1, 300, 8, 1, 256, CASE_ALL, true, false},
                                          {1, 51, 333, 8, 1, 256, CASE_ANY, true, false},
                                          {2, 65, 128, 1, 1, 64, CASE_ANY, false, false},
                                          {1, 2, 70, 140, 2, 8, CASE_CAUSAL, false, false},
                                          {4, 3, 200, 6, 3, 33, CASE_ANY, false, false},
                                          {2, 3, 1100, 8, 1, 64, CASE_ANY, false, false},
                                          {1, 20, 530, 4, 2, 128, CASE_CAUSAL, false, false},
                                          {3, 2, 90, 4, 1, 264, CASE_ANY, true, false},
                                          {1, 3, 300, 2, 1, 512, CASE_CAUSAL, false, false},
                                          {9, 5, 40, 3, 1, 21, CASE_SOME, false, false},
                                          {1, 2, 800, 2, 1, 16, CASE_ALL, false, true},
                                          {9, 2, 300, 6, 2, 64, CASE_FORKED, false, false},
                                          {20, 1, 500, 7, 1, 128, CASE_FORKED, true, true},
                                          {5, 9, 150, 4, 4, 33, CASE_FORKED, false, true},
                                          {30, 3, 200, 2, 1, 40, CASE_FORKED, false, true},
                                          {1, 400, 70, 1, 1, 8, CASE_ALL, false, false},
                                          {1, 260, 130, 1, 1, 64, CASE_ALL, false, false}};
/* Heads beyond NARROW columns are read exactly. RANDOM shapes are read exactly where a tier reads
 * in no other way; else OTHER of them in that way. */
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 40, OTHER = 16, FEW = 8, NARROW = 128 };

/* Softmax over all keys at once in float64, and how far float32 may be from it.
 *
 * A score is a chain of dim products, scaled, and the a bias added, the maximum subtracted: off by
 * (dim + 4) 2^-24 of the absolute terms and 2^-24 of the difference. A cap passes on at most that,
 * and its own tanh is off by 8 units of 2^-24 of the result, counted as two such terms more. The
 * exponential turns that into the same relative error, adds 2 units of 2^-23 of its own, and one
 * product by e^(old - new) for each later block (3 units). Numerator and denominator are sums of up
 * to `keys` such terms.
 *
 * On CUDA a block of keys is a softmax of its own, and blocks are folded twice: into chunks, then
 * into the answer; that doubles the factors e^(old - new). The float32 kernel does no more than
 * that. The bf16 kernel takes a query and a probability as two bf16 terms, which lose less than
 * 2^-17 of it, 128 units of 2^-24. A matrix instruction adds 16 exact products to a sum and may cut
 * each of the 17 at 2^-23 of the largest: 2.2 units for each column of a score, 140 for the 64 keys
 * of a block, once for each term.
 *
 * `split` is half of what terms lose, and 1.2 and 140 are those of one term, as all is counted
 * twice: a score's errors are doubled on both sides of the line (2.4 dim + 128, and 2 dim of the
 * chain above, are more than the 2.2 dim + 128 that are needed), and a probability is cut and lost
 * above the line alone (280 + 128 are more than 8 instructions of 34, and 128).
 *
 * Float32 memory by terms: a number less its two terms is at most 2^-18 of it, either low term
 * 2^-9. So a product of three of terms lacks three times 2^-18 of it, 192 units of 2^-24: `split`
 * is 96. The low products of a score have sums of their own, 2^-8 as large, whose cuts are 0.02
 * units a column (of the 2.4 - 2.2 above). A block's 12 instructions for values may cut 12 times 34
 * units: 204 twice. Of a value whose low term is not normal, half of the smallest bf16 is `tiny`.
 *
 * In whole numbers a query, a key and a value lose at most `half` of their row's unit, the largest
 * magnitude / 8191 or / 4095: half a unit, and what float32 is off when it is divided by the unit,
 * 8191 (2^-23). So a score is off by what `off` says; that and the exponential's polynomial, 2^-17
 * for a weight and for each later block, count twice as above. A weight times its value's largest
 * magnitude loses `half` a unit of the largest of a block, / 8191. What is below 2^-100, or a
 * weight below 2^-120, counts as that.
 *
 * A score in whole numbers is rounded 10 times: log2 e, times the scale; two times the inverse of a
 * limit and the unit by it; the unit by the scale; the sum, by either unit. What is left when the
 * maximum is subtracted is rounded once, at most twice the terms: 12. `lost` is of weights that are
 * e^(2 off) off, and 2^-17 for each later block, twice: 1.001 is more than that of 60 blocks. */
struct answer {
    double value[512], size[512], relative;
    double cuda, tiny;  /* by terms: whatever the size is */
    double whole, lost; /* in whole numbers: besides, of the size; and whatever that is */
};

static const double half = 0.5 + 0x1p-10;

/* The largest magnitude of a row. */
static double largest(const float *x, int dim)
{
    double most = 0x1p-100;
    for (int d = 0; d < dim; d++) {
        double size = fabs((double)x[d]);
        most = size > most ? size : most; /* by fmax gcc 12 for ARM ends in an error of its own */
    }
    return most;
}

/* How far a product of a query and a key in whole numbers is from theirs. */
static double product_off(const float *q, const float *k, int dim)
{
    double q_lost = half * largest(q, dim) / (dim <= 64 ? 8191 : 4095), off = 0;
    double k_lost = half * largest(k, dim) / 4095;
    for (int d = 0; d < dim; d++)
        off += fabs((double)q[d]) * k_lost + fabs((double)k[d]) * q_lost + q_lost * k_lost;
    return off;
}

/* What weights p[first] .. p[keys - 1], which add up to 1, and their values lose in whole numbers;
 * `most` has each value's largest magnitude. */
static double weights_lost(const double *p, const double *most, int first, int keys)
{
    double lost = ldexp(keys, -100);
    for (int at = first; at < keys; at++) {
        double top = 0;
        int end = (at / TEC_ATTENTION_KEYS + 1) * TEC_ATTENTION_KEYS;
        int begin = at;
        for (; at < keys && at < end; at++) {
            top = fmax(top, p[at] * most[at]);
            lost += (p[at] * half / 4095 + 0x1p-119) * most[at];
        }
        lost += (at-- - begin) * half / 8191 * top;
    }
    return lost;
}

static void derive_bounds(struct answer *y, const struct attention_case *w, int keys, double terms,
                          double range)
{
    int dim = w->a.head_dim, blocks = (keys + 63) / 64;
    bool by_terms = !w->bf16 && w->a.terms == 2;
    double split = by_terms ? 96 : 64, cuts = by_terms ? 204 : 140;
    double each = ldexp((dim + 4) * terms + range, -24) * 2;
    y->tiny = by_terms ? ldexp(1, -134) : 0;
    y->relative = 2 * (each + ldexp(4 + 4 * blocks, -24)) + 2 * ldexp(keys + blocks + 4, -24);
    y->cuda = y->relative + 2 * ldexp(4 * blocks, -24);
    if (w->bf16 || by_terms)
        y->cuda += 2 * ldexp((1.2 * dim + split) * terms, -24) * 2 + 2 * ldexp(cuts + split, -24);
}

static void solve(const struct attention_case *w, int row, int head, struct answer *y)
{
    const struct tec_attention_args *a = &w->a;
    int seq = a->row_seq[row], keys = a->visible[row], dim = a->head_dim;
    int first = tec_attention_first(a, keys);
    int kv_head = head / (a->heads / a->kv_heads);
    double *score = calloc(2 * ((size_t)keys + 1), sizeof *score), *most = score + keys + 1;
    double top = -HUGE_VAL, low = HUGE_VAL, sum = 0, worst = 0, off = 0;
    if (!score)
        abort();
    *y = (struct answer){.relative = 0};
    for (int j = first; j < keys; j++) {
        size_t at =
            ((size_t)case_slot(w, seq, j) * (size_t)a->kv_heads + (size_t)kv_head) * (size_t)dim;
        double terms = 0;
        for (int d = 0; d < dim; d++) {
            double x = (double)a->q[row * a->ldq + head * dim + d] * (double)w->k[at + (size_t)d];
            score[j] += x * (double)a->scale;
            terms += fabs(x * (double)a->scale);
        }
        if (a->cap > 0) {
            score[j] = (double)a->cap * tanh(score[j] / (double)a->cap);
            terms += 2 * fabs(score[j]);
        }
        if (a->bias) {
            double bias = (double)tec_attention_bias(a, row, head, j);
            score[j] += bias;
            terms += fabs(bias);
        }
        off = fmax(off, product_off(a->q + row * a->ldq + head * dim, w->k + at, dim));
        most[j] = largest(w->v + at, dim);
        worst = fmax(worst, terms);
        top = fmax(top, score[j]);
        low = fmin(low, score[j]);
    }
    for (int j = first; j < keys; j++) {
        size_t at =
            ((size_t)case_slot(w, seq, j) * (size_t)a->kv_heads + (size_t)kv_head) * (size_t)dim;
        double p = score[j] = exp(score[j] - top);
        sum += p;
        for (int d = 0; d < dim; d++) {
            y->value[d] += p * (double)w->v[at + (size_t)d];
            y->size[d] += fabs(p * (double)w->v[at + (size_t)d]);
        }
    }
    for (int d = 0; d < dim && keys > 0; d++) {
        y->value[d] /= sum;
        y->size[d] /= sum;
    }
    derive_bounds(y, w, keys, worst, fmin(top - low, 105));
    for (int j = first; j < keys; j++)
        score[j] /= sum;
    double each = off * (double)a->scale + ldexp(12 * worst, -24);
    int blocks = (keys + TEC_ATTENTION_KEYS - 1) / TEC_ATTENTION_KEYS;
    y->whole = expm1(2 * each) + 2 * ldexp(2 + blocks, -17);
    y->lost = exp(2 * each) * 1.001 * weights_lost(score, most, first, keys);
    free(score);
}

/* What whole numbers are permitted for, on tiers that have them. */
static bool in_whole_numbers(const struct tec_attention_args *a)
{
    return a->whole && a->head_dim <= NARROW && a->window == 0 && a->cap == 0 && !a->bias;
}

static double bound_of(const struct attention_case *w, const struct answer *y, int d, bool cuda)
{
    double bound = (cuda ? y->cuda : y->relative) * y->size[d] + ldexp(1, -140);
    bound += cuda ? y->tiny : 0;
    if (in_whole_numbers(&w->a))
        bound += y->whole * y->size[d] + y->lost;
    if (w->a.round)
        bound += ldexp(fabs(y->value[d]) + bound, -8) + ldexp(1, -133);
    return bound;
}

static void compare(struct conform *c, const struct attention_case *w, int row, int head)
{
    const struct tec_attention_args *a = &w->a;
    struct attention_case exact = *w;
    static struct answer y;
    solve(w, row, head, &y);
    exact.a.whole = 0;
    for (int d = 0; d < a->head_dim; d++) {
        size_t at = (size_t)row * (size_t)a->ldo + (size_t)(head * a->head_dim + d);
        conform_close(c, (double)((const float *)c->got[0])[at], y.value[d],
                      bound_of(w, &y, d, case_on_cuda(c)), "row %d (sees %d) head %d d %d", row,
                      a->visible[row], head, d);
        conform_close(c, (double)((const float *)c->want[0])[at], y.value[d],
                      bound_of(&exact, &y, d, false), "reference row %d (sees %d) head %d d %d",
                      row, a->visible[row], head, d);
    }
}

static struct conform_call call_of(const struct attention_case *w)
{
    const struct tec_attention_args *a = &w->a;
    struct conform_call call = {.ref = a, .fast = a, .live = a->max_rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a->out,
                                       a->max_rows,
                                       (size_t)a->heads * (size_t)a->head_dim * 4,
                                       (size_t)a->ldo * 4,
                                       NULL,
                                       0,
                                       1};
    return call;
}

static size_t row_size(const struct tec_attention_args *a)
{
    return (size_t)a->heads * (size_t)a->head_dim * sizeof(float);
}

/* Run fast with other arguments; row r of it must be row[r] (NULL: r) of the full run. */
static void expect_rows(struct conform *c, const struct attention_case *w,
                        struct tec_attention_args a, const int *row, int lanes, const char *when)
{
    size_t ld = (size_t)a.ldo;
    a.out = conform_buf(c, (size_t)a.max_rows * ld, sizeof *a.out);
    a.rows = conform_ints(c, 1, a.max_rows);
    for (int i = 0; i < lanes; i++)
        tec_kernel_infos[c->id].run(c->fast, &a, (struct tec_part){i, lanes});
    for (int r = 0; r < a.max_rows; r++) {
        size_t want = (size_t)(row ? row[r] : r) * (size_t)w->a.ldo;
        if (memcmp(a.out + (size_t)r * ld, (const float *)c->got[0] + want, row_size(&a)) != 0)
            conform_fail(c, "row %d of %d (%d x %d heads of %d) changes %s", r, a.max_rows, a.heads,
                         a.kv_heads, a.head_dim, when);
    }
}

/* A row keeps its bytes alone in a launch, whatever its company, tile, spans, lanes and device. */
static void company(struct conform *c, const struct attention_case *w, int seqs)
{
    struct tec_attention_args a = w->a;
    int row = conform_int(0, a.max_rows - 1), lanes = conform_int(4, CASE_LANES);
    *c->live = a.max_rows;
    if (!case_on_cuda(c))
        expect_rows(c, w, a, NULL, lanes, "with many lanes");
    int *from = conform_ints(c, (size_t)a.max_rows, 0);
    expect_rows(c, w, case_shuffled(c, w, from), from, 1, "in another order");
    expect_rows(c, w, case_recut(c, w, seqs), NULL, 1, "with spans cut elsewhere");
    if (case_on_cuda(c)) {
        cuda_tier_plan_for(86, conform_int(1, 4)); /* few processors, little shared memory */
        expect_rows(c, w, a, NULL, 1, "on a small device");
        cuda_tier_plan_for(0, 1);
        expect_rows(c, w, a, NULL, 1, "in large tiles");
        cuda_tier_plan_for(0, c->slow ? 40 : 1000);
        expect_rows(c, w, a, NULL, 1, "in small tiles");
        cuda_tier_plan_for(0, 0);
    }
    a.q += (size_t)row * (size_t)a.ldq;
    a.row_seq += row;
    a.visible += row;
    a.pos = a.bias ? a.pos + row : NULL;
    a.max_rows = 1;
    expect_rows(c, w, a, &row, 1, "when it is alone");
}

/* Scores with a bias: rows stand anywhere, some farther from keys than the table reaches. */
static void add_bias(struct conform *c, struct attention_case *w, struct case_shape s)
{
    struct tec_attention_args *a = &w->a;
    a->reach = conform_int(0, conform_int(0, 2 * s.keys));
    size_t n = (size_t)s.heads * (2 * (size_t)a->reach + 1);
    float *bias = conform_buf(c, n, sizeof *bias);
    int *pos = conform_ints(c, (size_t)a->max_rows, 0);
    conform_fill(bias, n, CONFORM_NORMAL, 2.0F);
    for (int r = 0; r < a->max_rows; r++)
        pos[r] = conform_int(-3, s.keys + 3);
    a->bias = bias;
    a->pos = pos;
}

/* How a kernel may read q, k, v and weights: as terms where that is CUDA's to choose, in whole
 * numbers on tiers that have them. */
enum reading { EXACT, TERMS, WHOLE };

/* A third of what may be in whole numbers keeps its window, cap and bias, with which none are. */
static void read_as(struct conform *c, struct attention_case *w, struct case_shape s,
                    enum reading reading)
{
    w->a.terms = reading == TERMS ? 2 : 0;
    w->a.whole = reading == WHOLE;
    if (reading == WHOLE && conform_int(0, 2) > 0) {
        w->a.window = 0;
        w->a.cap = 0;
    } else if (conform_int(0, 3) == 0) {
        add_bias(c, w, s);
    }
}

static void attention_shape(struct conform *c, struct case_shape s, bool bf16, enum reading reading,
                            enum conform_family family)
{
    struct attention_case w = case_build(c, s, bf16, family);
    read_as(c, &w, s, reading);
    struct conform_call call = call_of(&w);
    conform_run(c, &call);
    int all = w.a.max_rows * s.heads, step = 1 + all / 64;
    for (int i = conform_int(0, step - 1); i < all; i += step)
        compare(c, &w, i / s.heads, i % s.heads);
    if (s.round)
        conform_rounded(c, w.a.max_rows, w.a.ldo, s.heads * s.dim);
    company(c, &w, s.seqs);
    conform_end(c);
}

/* Keys past some index are NaN and infinite: rows that do not see them keep their bytes. */
static void hidden_keys(struct conform *c, bool bf16, enum reading reading)
{
    struct case_shape s = {1, 40, conform_int(60, 200), 4, 2, 24, CASE_ANY, false, false};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    read_as(c, &w, s, reading);
    struct conform_call call = call_of(&w);
    int from = conform_int(1, w.length[0]);
    cuda_tier_plan_for(0, conform_int(0, 1)); /* small tiles or large ones */
    conform_run(c, &call);
    size_t ld = (size_t)w.a.ldo;
    float *clean = conform_buf(c, (size_t)w.a.max_rows * (size_t)w.a.ldo, sizeof *clean);
    memcpy(clean, c->got[0], (size_t)w.a.max_rows * (size_t)w.a.ldo * sizeof *clean);
    case_spoil(&w, s, from);
    conform_run(c, &call);
    for (int r = 0; r < w.a.max_rows; r++)
        if (w.a.visible[r] <= from &&
            memcmp(clean + (size_t)r * ld, (const float *)c->got[0] + (size_t)r * ld,
                   (size_t)s.heads * (size_t)s.dim * 4) != 0)
            conform_fail(c, "row %d (sees %d) changed with keys from %d", r, w.a.visible[r], from);
    cuda_tier_plan_for(0, 0);
    conform_end(c);
}

/* Queries of even rows times `even`, the others times `odd`. */
static void times(struct attention_case *w, float even, float odd)
{
    for (int r = 0; r < w->a.max_rows; r++)
        for (int i = 0; i < w->a.heads * w->a.head_dim; i++)
            w->q[r * w->a.ldq + i] *= r % 2 ? odd : even;
}

/* More chunks than a GPU combines in one go, and rows that end within, at and behind the last of
 * the first go, in heads of 24 columns and of 7. */
static void many_chunks(struct conform *c, bool bf16, enum reading reading)
{
    static const int ends[] = {2200, 130, 2048, 2049, 0};
    for (int i = 0; i < 2; i++) {
        struct case_shape s = {1, 5, 2200, 2, 2, i ? 7 : 24, CASE_ALL, false, true};
        struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
        int *sees = conform_ints(c, (size_t)w.a.max_rows, 0);
        for (int r = 0; r < w.a.max_rows; r++)
            sees[r] = ends[r % 5];
        w.a.visible = sees;
        w.a.terms = reading == TERMS ? 2 : 0;
        w.a.window = 0;
        w.a.cap = 0;
        struct conform_call call = call_of(&w);
        conform_run(c, &call);
        for (int at = 0; at < w.a.max_rows * s.heads; at++)
            compare(c, &w, at / s.heads, at % s.heads);
        company(c, &w, s.seqs);
        if (case_on_cuda(c)) {
            cuda_tier_plan_for(0, 40);
            cuda_tier_room(12 << 10, 0); /* of two chunks, the other head beside them */
            expect_rows(c, &w, w.a, NULL, 1, "where all chunks find no room");
            cuda_tier_room(0, 0);
            cuda_tier_plan_for(0, 0);
        }
        conform_end(c);
    }
}

/* Scores that differ by far more than an exponential can show, either end first. */
static void steep_scores(struct conform *c, bool bf16, enum reading reading)
{
    struct case_shape s = {2, 8, 150, 2, 1, 16, CASE_ANY, false, false};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    read_as(c, &w, s, reading);
    if (in_whole_numbers(&w.a))
        times(&w, 10, 3); /* beyond that, what whole numbers may lose is all */
    else
        times(&w, 300, 30);
    struct conform_call call = call_of(&w);
    conform_run(c, &call);
    for (int i = 0; i < w.a.max_rows * s.heads; i++)
        compare(c, &w, i / s.heads, i % s.heads);
    conform_end(c);
}

/* Scores beyond 2^31, each by far larger than the one before: an answer is the last key's value,
 * but for half a unit of it. */
static void huge_scores(struct conform *c, bool bf16, enum reading reading)
{
    struct case_shape s = {1, 20, 128, 2, 1, 64, CASE_ANY, false, true};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    read_as(c, &w, s, reading);
    w.a.cap = 0;
    for (int key = 0; key < s.keys; key++)
        for (int d = 0; d < s.dim; d++) {
            int at = case_slot(&w, 0, key) * s.dim + d;
            w.k[at] = 1 + (float)key / 128;
            uint16_t bits = tec_bf16_bits(w.k[at]);
            size_t size = bf16 ? sizeof bits : sizeof *w.k;
            memcpy(w.keys + (size_t)at * size, bf16 ? (const void *)&bits : &w.k[at], size);
        }
    for (int i = 0; i < w.a.max_rows * w.a.ldq; i++)
        w.q[i] = 1e10F * (1 + fabsf(conform_float(1)));
    struct conform_call call = call_of(&w);
    conform_run(c, &call);
    for (int r = 0; r < w.a.max_rows; r++)
        for (int i = 0; i < s.heads * s.dim && w.a.visible[r] > 0; i++) {
            const float *v = w.v + case_slot(&w, 0, w.a.visible[r] - 1) * s.dim;
            double got = (double)((const float *)c->got[0])[r * w.a.ldo + i];
            conform_close(c, got, (double)v[i % s.dim], ldexp(largest(v, s.dim), -12) * 1.01,
                          "row %d (sees %d) column %d, large scores", r, w.a.visible[r], i);
        }
    conform_end(c);
}

/* One NaN in a query, a key or a value that the last row sees. */
static void not_a_number(struct conform *c, bool bf16, enum reading reading)
{
    struct case_shape s = {1, 9, conform_int(1, 150), 1, 1, 24, CASE_ALL, false, true};
    for (int where = 0; where < 3; where++) {
        struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
        read_as(c, &w, s, reading);
        int row = w.a.max_rows - 1, d = conform_int(0, s.dim - 1);
        int first = tec_attention_first(&w.a, s.keys);
        size_t size = bf16 ? 2 : 4;
        size_t at = (size_t)(case_slot(&w, 0, conform_int(first, s.keys - 1)) * s.dim + d) * size;
        uint32_t bits = bf16 ? 0x7fc1 : 0x7fc00001;
        if (where == 0)
            memcpy(&w.q[row * w.a.ldq + d], &(uint32_t){0x7fc00001}, 4);
        else
            memcpy((where == 1 ? w.keys : w.values) + at, &bits, size);
        struct conform_call call = call_of(&w);
        conform_run(c, &call);
        if (!isnan(((const float *)c->got[0])[row * w.a.ldo + d]))
            conform_fail(c, "a NaN in %s does not show", where == 0 ? "q" : where == 1 ? "k" : "v");
        conform_end(c);
    }
}

/* Whole numbers have other bytes, so where they are permitted and the tier has them, they ran. */
static void whole_numbers_run(struct conform *c, bool bf16, bool has)
{
    struct case_shape s = {1, 70, 70, 2, 2, 64, CASE_ALL, true, true};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    w.a.window = 0;
    w.a.cap = 0;
    struct conform_call call = call_of(&w);
    size_t size = (size_t)w.a.max_rows * (size_t)w.a.ldo * sizeof *w.a.out;
    float *exact = conform_buf(c, size / sizeof *exact, sizeof *exact);
    conform_run(c, &call);
    memcpy(exact, c->got[0], size);
    w.a.whole = 1;
    conform_run(c, &call);
    if ((memcmp(exact, c->got[0], size) != 0) != has)
        conform_fail(c, "whole numbers were %s", has ? "not multiplied" : "multiplied");
    conform_end(c);
}

/* The real shapes. The reference would take seconds for the large ones: only fast is timed. */
static void bench(struct conform *c, const char *name, struct case_shape s, bool bf16,
                  enum reading reading)
{
    static const char *const readings[] = {"", ", terms", ", whole"};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    w.a.window = 0;
    w.a.cap = 0;
    w.a.terms = reading == TERMS ? 2 : 0;
    w.a.whole = reading == WHOLE;
    double best = 1e30, flops = 0, bytes = 0;
    for (int r = 0; r < w.a.max_rows; r++)
        flops += 4.0 * w.a.visible[r] * s.heads * s.dim;
    for (int i = 0; i < s.seqs; i++)
        bytes += 2.0 * w.length[i] * s.kv_heads * s.dim * (bf16 ? 2 : 4);
    for (int i = 0; i < 5; i++) {
        double start = conform_seconds();
        tec_kernel_infos[c->id].run(c->fast, &w.a, (struct tec_part){0, 1});
        best = fmin(best, conform_seconds() - start);
    }
    printf("# bench %-14s %-6s %-14s%-7s %11.0f ns %7.2f GF/s, keys and values %7.2f GB/s\n",
           c->kernel, c->tier, name, readings[reading], best * 1e9, flops / best * 1e-9,
           bytes / best * 1e-9);
    conform_end(c);
}

/* Where the tier is slow: still more keys than a chunk (and once, in narrow heads, than three), and
 * more packed rows than a tile. */
static struct case_shape scaled(const struct conform *c, struct case_shape s)
{
    s.rows = conform_scale(c, s.rows, 64);
    s.keys = conform_scale(c, s.keys, s.dim > 256 ? 100 : s.dim <= 16 ? 800 : 300);
    return s;
}

static const struct {
    const char *name;
    struct case_shape shape;
} real[] = {
    {"prefix 532", {1, 532, 532, 8, 1, 256, CASE_ALL, true, true}},
    {"prefix 968", {1, 968, 968, 8, 1, 256, CASE_ALL, true, true}},
    {"vision 1024", {1, 1024, 1024, 12, 12, 64, CASE_ALL, true, true}},
    {"vision 3 x 256", {3, 256, 256, 16, 16, 72, CASE_ALL, true, true}},
    {"actions 50", {1, 50, 163, 15, 5, 64, CASE_ALL, true, true}},
    {"actions 10", {1, 10, 542, 8, 1, 256, CASE_ALL, true, true}},
    {"actions 51", {1, 51, 1019, 8, 1, 256, CASE_ALL, true, true}},
    {"decode 1", {1, 1, 1000, 8, 1, 256, CASE_ALL, true, true}},
    {"decode 8", {8, 1, 1000, 8, 1, 256, CASE_ALL, true, true}},
};

/* What a kernel of this tier may make of float32 memory, or of rounded sums. */
static enum reading other_reading(const struct conform *c, bool bf16)
{
    if (case_on_cuda(c))
        return bf16 ? EXACT : TERMS;
#if defined(__x86_64__)
    if (strcmp(c->tier, tec_tier_name(TEC_TIER_avx512)) == 0 &&
        __builtin_cpu_supports("avx512vnni"))
        return WHOLE;
#endif
    return EXACT;
}

static void all_shapes(struct conform *c, bool bf16, enum reading reading, int random)
{
    for (int i = 0; i < EDGES; i++)
        if (reading != TERMS || edges[i].dim <= NARROW)
            attention_shape(c, scaled(c, edges[i]), bf16, reading, CONFORM_NORMAL);
    for (int i = 0; i < conform_few(c, c->slow ? FEW : random); i++) {
        int kv_heads = conform_int(1, 3), dim = conform_int(1, conform_int(1, 100));
        struct case_shape s = {conform_int(1, 4),
                               conform_int(1, 20),
                               conform_int(1, 200),
                               kv_heads * conform_int(1, 4),
                               kv_heads,
                               dim,
                               (enum case_view)conform_int(0, 2),
                               conform_int(0, 1),
                               false};
        attention_shape(c, scaled(c, s), bf16, reading,
                        (enum conform_family)(i % CONFORM_FAMILIES));
    }
    struct case_shape small = {1, 4, 2, 3, 1, 24, CASE_ALL, false, true};
    for (int i = 0; i < 4; i++) /* some columns have nothing else; some have a window */
        attention_shape(c, small, bf16, reading, CONFORM_DENORMAL);
    many_chunks(c, bf16, reading);
    for (int i = 0; i < (c->slow ? 2 : 4); i++) {
        hidden_keys(c, bf16, reading);
        steep_scores(c, bf16, reading);
        if (!case_on_cuda(c)) {
            huge_scores(c, bf16, reading);
            not_a_number(c, bf16, reading);
        }
    }
}

static void attention(struct conform *c, bool bf16)
{
    const enum reading other = other_reading(c, bf16);
    all_shapes(c, bf16, EXACT, other == EXACT ? RANDOM : RANDOM - OTHER);
    if (other != EXACT)
        all_shapes(c, bf16, other, OTHER);
    if (!case_on_cuda(c))
        whole_numbers_run(c, bf16, other == WHOLE);
    if (!c->bench)
        return;
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
        bench(c, real[i].name, real[i].shape, bf16, EXACT);
        if (other != EXACT && real[i].shape.dim <= NARROW)
            bench(c, real[i].name, real[i].shape, bf16, other);
    }
}

void conform_attention_f32(struct conform *c)
{
    attention(c, false);
}

void conform_attention_bf16(struct conform *c)
{
    attention(c, true);
}
