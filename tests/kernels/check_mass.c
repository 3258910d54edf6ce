/* check_mass.c - checks the attention mass of ranges of keys: against float64 with derived bounds,
 * and that rows and ranges keep their bytes in any company. */
#include "kernels/attention.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/cuda_tier.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct case_shape edges[] = {{1, 1, 1, 1, 1, 1, CASE_ALL, false, false},
                                          {1, 3, 7, 2, 1, 9, CASE_ANY, false, false},
                                          {2, 9, 63, 2, 2, 14, CASE_ANY, false, false},
                                          {2, 5, 64, 4, 2, 22, CASE_CAUSAL, false, false},
                                          {3, 4, 65, 8, 1, 16, CASE_ALL, false, false},
                                          {2, 30, 129, 3, 1, 72, CASE_CAUSAL, false, false},
                                          {1, 9, 200, 16, 16, 72, CASE_ALL, false, false},
                                          {1, 40, 333, 8, 1, 128, CASE_ANY, false, false},
                                          {1, 2, 70, 140, 2, 8, CASE_CAUSAL, false, false},
                                          {4, 3, 200, 6, 3, 33, CASE_ANY, false, false},
                                          {1, 20, 530, 4, 2, 128, CASE_CAUSAL, false, false},
                                          {1, 3, 300, 2, 1, 512, CASE_CAUSAL, false, false},
                                          {9, 5, 40, 3, 1, 21, CASE_SOME, false, false},
                                          {1, 2, 800, 2, 1, 16, CASE_ALL, false, true},
                                          {1, 17, 100, 40, 2, 16, CASE_ANY, false, false},
                                          {9, 2, 300, 6, 2, 64, CASE_FORKED, false, false},
                                          {20, 1, 500, 7, 1, 40, CASE_FORKED, false, true}};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 40, FEW = 8 };

/* Cut ranges of all lengths, empty ones among them; the last may end anywhere, also past all
 * keys. */
static void cut_ranges(struct conform *c, struct tec_mass_args *a, int keys)
{
    int most = tec_mass_ranges(a->head_dim), ranges = conform_int(1, conform_int(1, keys + 3));
    int step = conform_int(1, conform_int(1, 70)), at = 0;
    a->max_ranges = ranges < most ? ranges : most;
    int *ends = conform_ints(c, (size_t)a->max_ranges, 0);
    for (int s = 0; s < a->max_ranges; s++) {
        at += conform_int(0, 9) ? conform_int(1, step) : 0;
        ends[s] = at;
    }
    a->ends = ends;
    a->n_ranges = conform_ints(c, 1, conform_int(0, 3) ? a->max_ranges : conform_int(0, ranges));
}

static int ranges_of(const struct tec_mass_args *a)
{
    return tec_live(a->n_ranges, a->max_ranges);
}

static struct tec_mass_args mass_of(struct tec_attention_args from, const struct tec_mass_args *a)
{
    struct tec_mass_args y = *a;
    y.q = from.q;
    y.row_seq = from.row_seq;
    y.visible = from.visible;
    y.seqs = from.seqs;
    y.spans = from.spans;
    y.rows = from.rows;
    y.max_rows = from.max_rows;
    return y;
}

static struct tec_mass_args build(struct conform *c, struct attention_case *w, int keys)
{
    struct tec_mass_args a = {.k = w->a.k,
                              .scratch = w->a.scratch,
                              .ldq = w->a.ldq,
                              .heads = w->a.heads,
                              .kv_heads = w->a.kv_heads,
                              .head_dim = w->a.head_dim,
                              .scale = w->a.scale,
                              .cap = w->a.cap};
    a = mass_of(w->a, &a);
    w->a.window = conform_int(0, 2) ? 0 : conform_int(1, conform_int(1, 2 * keys));
    a.window = w->a.window;
    cut_ranges(c, &a, keys);
    a.ldo = conform_ld(a.max_ranges);
    a.out = conform_buf(c, (size_t)a.max_rows * (size_t)a.ldo, sizeof *a.out);
    return a;
}

/* Weights of one row in float64, and how far those of a tier may be from them.
 *
 * A weight is off by what check_attention.c derives for a result, all terms being positive: the
 * scores above and below the line, the exponentials, factors e^(old - new) for each block (twice,
 * for a sum of blocks that are each a softmax of its own), sums of up to `keys` terms. The sum over
 * heads adds 2^-24 for each of them, and where blocks are added to the result one by one, for each
 * of those. The reference works in float64, and rounds the sum of a head and the sum of heads.
 *
 * On CUDA a query is three bf16 terms for keys of bf16: all of it. A matrix instruction adds 16
 * exact products to a sum and may cut each of the 17 at 2^-23 of the largest: 2.2 units of 2^-24
 * for each column, once for the first term and, of 2^-8 of it, twice for the others, so 1.2 more
 * than the chain above; then the two sums are rounded into one. */
struct answer {
    double *value, *bound, *ref_bound;
};

static double score_of(const struct attention_case *w, int row, int head, int key, double *terms)
{
    const struct tec_attention_args *a = &w->a;
    size_t slot = (size_t)case_slot(w, a->row_seq[row], key), dim = (size_t)a->head_dim;
    size_t at = (slot * (size_t)a->kv_heads + (size_t)(head / (a->heads / a->kv_heads))) * dim;
    const float *q = a->q + (size_t)row * (size_t)a->ldq + (size_t)head * dim;
    double sum = 0;
    *terms = 0;
    for (size_t d = 0; d < dim; d++) {
        sum += (double)q[d] * (double)w->k[at + d];
        *terms += fabs((double)q[d] * (double)w->k[at + d] * (double)a->scale);
    }
    sum *= (double)a->scale;
    if (a->cap <= 0)
        return sum;
    *terms += 2 * (double)a->cap;
    return (double)a->cap * tanh(sum / (double)a->cap);
}

static void add_head(const struct attention_case *w, const struct tec_mass_args *m, int row,
                     int head, bool terms_of_bf16, struct answer *y)
{
    int keys = m->visible[row], first = tec_attention_first(&w->a, keys), n = ranges_of(m);
    int blocks = (keys + 63) / 64;
    double *score = calloc((size_t)keys + 1, sizeof *score), top = -HUGE_VAL, low = HUGE_VAL;
    double sum = 0, worst = 0, terms;
    if (!score)
        abort();
    for (int j = first; j < keys; j++) {
        score[j] = score_of(w, row, head, j, &terms);
        worst = fmax(worst, terms);
        top = fmax(top, score[j]);
        low = fmin(low, score[j]);
    }
    for (int j = first; j < keys; j++)
        sum += exp(score[j] - top);
    double each = ldexp((m->head_dim + 3) * worst + fmin(top - low, 105), -24) * 2;
    if (terms_of_bf16)
        each += ldexp((1.2 * m->head_dim + 2) * worst, -24) * 2;
    double relative = 2 * (each + ldexp(4 + 8 * blocks, -24)) + 2 * ldexp(keys + blocks + 4, -24);
    relative += ldexp((blocks + 1) * m->heads + 2, -24);
    for (int j = first, s = 0; j < keys; j++) {
        while (s < n && m->ends[s] <= j)
            s++;
        if (s == n)
            break;
        double weight = exp(score[j] - top) / sum;
        y->value[s] += weight;
        y->bound[s] += weight * relative + ldexp(1, -140);
        y->ref_bound[s] += weight * (ldexp(m->heads + 3, -24) + ldexp(worst, -45)) + ldexp(1, -140);
    }
    free(score);
}

static void compare(struct conform *c, const struct attention_case *w,
                    const struct tec_mass_args *m, int row)
{
    int n = ranges_of(m);
    double *room = calloc((size_t)n * 3 + 1, sizeof *room);
    if (!room)
        abort();
    struct answer y = {room, room + n, room + 2 * n};
    for (int h = 0; h < m->heads; h++)
        add_head(w, m, row, h, w->bf16 && case_on_cuda(c), &y);
    for (int s = 0; s < n; s++) {
        size_t at = (size_t)row * (size_t)m->ldo + (size_t)s;
        conform_close(c, (double)((const float *)c->got[0])[at], y.value[s], y.bound[s],
                      "row %d (sees %d, window %d) range %d of %d", row, m->visible[row], m->window,
                      s, n);
        conform_close(c, (double)((const float *)c->want[0])[at], y.value[s], y.ref_bound[s],
                      "reference row %d (sees %d, window %d) range %d of %d", row, m->visible[row],
                      m->window, s, n);
    }
    free(room);
}

/* Run fast with other arguments; the columns below n of row r must equal those of row[r] (NULL:
 * r). */
static void expect_rows(struct conform *c, const struct tec_mass_args *m, struct tec_mass_args a,
                        const int *row, int lanes, const char *when)
{
    size_t ld = (size_t)a.ldo, size = (size_t)ranges_of(&a) * sizeof(float);
    a.out = conform_buf(c, (size_t)a.max_rows * ld, sizeof *a.out);
    a.rows = conform_ints(c, 1, a.max_rows);
    for (int i = 0; i < lanes; i++)
        tec_kernel_infos[c->id].run(c->fast, &a, (struct tec_part){i, lanes});
    for (int r = 0; r < a.max_rows; r++) {
        const float *want = (const float *)c->got[0] + (size_t)(row ? row[r] : r) * (size_t)m->ldo;
        if (memcmp(a.out + (size_t)r * ld, want, size) != 0)
            conform_fail(c, "row %d of %d (%d x %d heads of %d) changes %s", r, a.max_rows, a.heads,
                         a.kv_heads, a.head_dim, when);
    }
}

/* A row keeps its bytes in any company; a range keeps its bytes whatever comes behind it. */
static void company(struct conform *c, const struct attention_case *w,
                    const struct tec_mass_args *m, int seqs)
{
    struct tec_mass_args a = *m;
    int row = conform_int(0, a.max_rows - 1), *from = conform_ints(c, (size_t)a.max_rows, 0);
    *c->live = a.max_rows;
    if (!case_on_cuda(c))
        expect_rows(c, m, a, NULL, conform_int(4, CASE_LANES), "with many lanes");
    expect_rows(c, m, mass_of(case_shuffled(c, w, from), m), from, 1, "in another order");
    expect_rows(c, m, mass_of(case_recut(c, w, seqs), m), NULL, 1, "with spans cut elsewhere");
    if (case_on_cuda(c)) {
        cuda_tier_plan_for(86, conform_int(1, 4)); /* few processors, little shared memory */
        expect_rows(c, m, a, NULL, 1, "on a small device");
        cuda_tier_plan_for(0, 1);
        expect_rows(c, m, a, NULL, 1, "in large tiles");
        size_t tile = 64 * (size_t)a.max_ranges * sizeof(float); /* what its sums take */
        cuda_tier_room(tile * (size_t)conform_int(1, 12), tile);
        expect_rows(c, m, a, NULL, 1, "with room for the sums of few tiles");
        cuda_tier_plan_for(0, 0);
        cuda_tier_room(tile, tile * (size_t)conform_int(1, 3));
        expect_rows(c, m, a, NULL, 1, "in small tiles with room for the sums of few");
        cuda_tier_room(0, 0);
    }
    a.n_ranges = conform_ints(c, 1, conform_int(0, ranges_of(m)));
    expect_rows(c, m, a, NULL, 1, "with fewer ranges");
    a = *m;
    a.q += (size_t)row * (size_t)a.ldq;
    a.row_seq += row;
    a.visible += row;
    a.max_rows = 1;
    expect_rows(c, m, a, &row, 1, "when it is alone");
}

static struct conform_call call_of(const struct tec_mass_args *a)
{
    struct conform_call call = {.ref = a, .fast = a, .live = a->max_rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a->out,
                                       a->max_rows,
                                       (size_t)ranges_of(a) * sizeof(float),
                                       (size_t)a->ldo * sizeof(float),
                                       NULL,
                                       0,
                                       1};
    return call;
}

static void mass_shape(struct conform *c, struct case_shape s, bool bf16,
                       enum conform_family family, bool steep)
{
    struct attention_case w = case_build(c, s, bf16, family);
    struct tec_mass_args a = build(c, &w, s.keys);
    for (int r = 0; r < a.max_rows; r++)
        for (int i = 0; steep && i < s.heads * s.dim; i++)
            w.q[r * a.ldq + i] *= r % 2 ? 30.0F : 300.0F;
    struct conform_call call = call_of(&a);
    if (ranges_of(&a) > 0) {                      /* a row of no bytes would mean a whole buffer */
        cuda_tier_plan_for(0, conform_int(0, 1)); /* small tiles or large ones */
        conform_run(c, &call);
        cuda_tier_plan_for(0, 0);
        for (int r = conform_int(0, a.max_rows / 16); r < a.max_rows; r += 1 + a.max_rows / 16)
            compare(c, &w, &a, r);
        company(c, &w, &a, s.seqs);
    }
    conform_end(c);
}

/* Keys past some index are NaN and infinite: rows that do not see them keep their bytes. */
static void hidden_keys(struct conform *c, bool bf16)
{
    struct case_shape s = {1, 40, conform_int(60, 200), 4, 2, 24, CASE_ANY, false, false};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    struct tec_mass_args a = build(c, &w, s.keys);
    a.n_ranges = conform_ints(c, 1, a.max_ranges);
    struct conform_call call = call_of(&a);
    int from = conform_int(1, w.length[0]);
    conform_run(c, &call);
    size_t ld = (size_t)a.ldo, size = (size_t)a.max_rows * ld * sizeof(float);
    const float *clean = memcpy(conform_buf(c, size, 1), c->got[0], size);
    case_spoil(&w, s, from);
    conform_run(c, &call);
    for (int r = 0; r < a.max_rows; r++)
        if (a.visible[r] <= from &&
            memcmp(clean + (size_t)r * ld, (const float *)c->got[0] + (size_t)r * ld,
                   (size_t)a.max_ranges * sizeof *clean) != 0)
            conform_fail(c, "row %d (sees %d) changed with keys from %d", r, a.visible[r], from);
    conform_end(c);
}

/* Ranges of so many keys each, over all keys; no window. */
static void cut_evenly(struct conform *c, struct attention_case *w, struct tec_mass_args *a,
                       int keys, int each)
{
    int *ends = conform_ints(c, (size_t)(keys / each), 0);
    for (int i = 0; i < keys / each; i++)
        ends[i] = (i + 1) * each;
    a->max_ranges = keys / each;
    a->ends = ends;
    a->n_ranges = conform_ints(c, 1, a->max_ranges);
    a->ldo = conform_ld(a->max_ranges);
    a->out = conform_buf(c, (size_t)a->max_rows * (size_t)a->ldo, sizeof *a->out);
    w->a.window = a->window = 0;
}

/* A query that two bf16 numbers are as far from as they can be, 2^-17 of it: its every bit shows.
 */
static void every_bit(struct conform *c, bool bf16)
{
    struct case_shape s = {1, 16, 12, 1, 1, 1, CASE_ALL, false, false};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    struct tec_mass_args a = build(c, &w, s.keys);
    cut_evenly(c, &w, &a, s.keys, 1);
    for (int r = 0; r < a.max_rows; r++)
        w.q[r * a.ldq] = (r % 2 ? -32.0F : 32.0F) * (1.0F + 0x1p-8F - 0x1p-17F);
    struct conform_call call = call_of(&a);
    conform_run(c, &call);
    for (int r = 0; r < a.max_rows; r++)
        compare(c, &w, &a, r);
    conform_end(c);
}

/* Scores that rise from block to block by more than e^x of float32 reaches: the weight of the key
 * between, e^-80, is there all the same. */
static void rising(struct conform *c, bool bf16)
{
    struct case_shape s = {1, 5, 192, 2, 1, 1, CASE_ALL, false, true};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    struct tec_mass_args a = build(c, &w, s.keys);
    cut_evenly(c, &w, &a, s.keys, 64);
    w.a.scale = a.scale = 1.0F;
    w.a.cap = a.cap = 0.0F;
    for (int key = 0; key < s.keys; key++)
        case_put_key(&w, 0, key, key == 69 ? 30.0F : key == 130 ? 110.0F : 0.0F);
    for (int i = 0; i < a.max_rows * a.ldq; i++)
        w.q[i] = 1.0F;
    struct conform_call call = call_of(&a);
    conform_run(c, &call);
    for (int r = 0; r < a.max_rows; r++)
        compare(c, &w, &a, r);
    conform_end(c);
}

/* Check counts of ranges below none and beyond the most. */
static void any_count(struct conform *c, bool bf16, int count)
{
    struct case_shape s = {1, 6, 90, 4, 2, 16, CASE_ALL, false, false};
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    struct tec_mass_args a = build(c, &w, s.keys);
    size_t size = (size_t)a.max_rows * (size_t)a.ldo * sizeof *a.out;
    void *before = memcpy(conform_buf(c, size, 1), a.out, size);
    a.n_ranges = conform_ints(c, 1, count);
    *c->live = a.max_rows;
    struct conform_call call = call_of(&a);
    if (count > 0)
        conform_run(c, &call);
    else
        tec_kernel_infos[c->id].run(c->fast, &a, (struct tec_part){0, 1});
    if (count <= 0 && memcmp(a.out, before, size) != 0)
        conform_fail(c, "%d ranges: something was written", count);
    conform_end(c);
}

static void bench(struct conform *c, const char *name, struct case_shape s, int range, bool bf16)
{
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    struct tec_mass_args a = build(c, &w, s.keys);
    cut_evenly(c, &w, &a, s.keys, range);
    enum tec_kernel_id whole = bf16 ? TEC_KERNEL_attention_bf16 : TEC_KERNEL_attention_f32;
    double best = 1e30, attention = 1e30, flops = 0;
    for (int r = 0; r < a.max_rows; r++)
        flops += 2.0 * a.visible[r] * s.heads * s.dim;
    for (int i = 0; i < 5; i++) {
        double start = conform_seconds();
        tec_kernel_infos[c->id].run(c->fast, &a, (struct tec_part){0, 1});
        best = fmin(best, conform_seconds() - start);
        start = conform_seconds();
        tec_kernel_infos[whole].run(c->fast, &w.a, (struct tec_part){0, 1});
        attention = fmin(attention, conform_seconds() - start);
    }
    printf("# bench %-18s %-6s %-20s %11.0f ns %7.2f GF/s, of attention %4.2f\n", c->kernel,
           c->tier, name, best * 1e9, flops / best * 1e-9, best / attention);
    conform_end(c);
}

static struct case_shape scaled(const struct conform *c, struct case_shape s)
{
    s.rows = conform_scale(c, s.rows, 40);
    s.keys = conform_scale(c, s.keys, s.dim > 256 ? 100 : 300);
    return s;
}

static void mass(struct conform *c, bool bf16)
{
    for (int i = 0; i < EDGES; i++)
        mass_shape(c, scaled(c, edges[i]), bf16, CONFORM_NORMAL, false);
    for (int i = 0; i < conform_few(c, c->slow ? FEW : RANDOM); i++) {
        int kv_heads = conform_int(1, 3), dim = conform_int(1, conform_int(1, 100));
        struct case_shape s = {conform_int(1, 4),
                               conform_int(1, 20),
                               conform_int(1, 200),
                               kv_heads * conform_int(1, 4),
                               kv_heads,
                               dim,
                               (enum case_view)conform_int(0, 2),
                               false,
                               false};
        mass_shape(c, scaled(c, s), bf16, (enum conform_family)(i % CONFORM_FAMILIES),
                   conform_int(0, 3) == 0);
    }
    /* Largest scores that come late. */
    const struct case_shape steep = {1, 12, 300, 4, 2, 16, CASE_ALL, false, false};
    for (int i = 0; i < (c->slow ? 1 : 4); i++)
        mass_shape(c, steep, bf16, CONFORM_NORMAL, true);
    every_bit(c, bf16);
    rising(c, bf16);
    for (int i = 0; i < (c->slow ? 1 : 4); i++)
        hidden_keys(c, bf16);
    any_count(c, bf16, 0);
    any_count(c, bf16, -3);
    any_count(c, bf16, 1 << 20);
    if (!c->bench)
        return;
    struct case_shape s = {1, 512, 2048, 16, 2, 128, CASE_CAUSAL, false, true};
    bench(c, "512 of 2048 by 128", s, 128, bf16);
    bench(c, "512 of 2048 by 16", s, 16, bf16);
    bench(c, "512 of 2048 by 1", s, 1, bf16);
    s.rows = 16;
    bench(c, "16 of 2048 by 32", s, 32, bf16);
}

void conform_attention_mass_f32(struct conform *c)
{
    mass(c, false);
}

void conform_attention_mass_bf16(struct conform *c)
{
    mass(c, true);
}
