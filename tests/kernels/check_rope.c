/* check_rope.c - checks rotary embedding and the storing of keys and values: two rounded products
 * and a sum, compared with the formula in float64. */
#include "kernels/bf16.h"
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

enum { POSITIONS = 1200 };

struct shape {
    int rows, heads, kv_heads, dim;
    bool queries, rotated;
};

static const struct shape edges[] = {
    {1, 1, 1, 2, true, true},     {3, 2, 1, 14, true, true},   {5, 4, 2, 16, true, true},
    {4, 8, 1, 22, true, true},    {7, 3, 3, 30, false, true},  {6, 2, 2, 34, true, true},
    {9, 16, 16, 72, true, false}, {5, 3, 1, 9, true, false},   {2, 1, 1, 1, true, false},
    {8, 8, 1, 256, false, true},  {51, 8, 1, 256, true, true}, {256, 16, 16, 72, true, false},
    {968, 8, 1, 256, true, true}};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 30 };

/* Make a table as the engine does, for frequencies that fall with i. */
static float *table(struct conform *c, int half)
{
    float *t = conform_buf(c, (size_t)POSITIONS * (size_t)half * 2, sizeof *t);
    float *at = t;
    for (int p = 0; p < POSITIONS; p++)
        for (int i = 0; i < half; i++) {
            double angle = p * pow(10000.0, -(double)i / half);
            *at++ = (float)cos(angle);
            *at++ = (float)sin(angle);
        }
    return t;
}

static double seen(float x, bool bf16)
{
    return (double)(bf16 ? tec_bf16_round(x) : x);
}

/* Compare one head, perhaps rounded to bf16 first, with the formula: two products and a sum,
 * rounded, and then perhaps rounded to bf16. */
static void compare_head(struct conform *c, const struct tec_rope_args *a, const float *x, int row,
                         const float *want, bool bf16, bool before)
{
    int half = a->head_dim / 2;
    for (int d = 0; d < a->head_dim; d++) {
        double exact = seen(x[d], before), bound = 0;
        if (a->cos_sin) {
            int i = d < half ? d : d - half;
            const float *angle = a->cos_sin + ((size_t)a->pos[row] * (size_t)half + (size_t)i) * 2;
            double other = seen(x[d < half ? d + half : i], before) * (double)angle[1];
            exact = exact * (double)angle[0] + (d < half ? -other : other);
            bound = (double)FLT_EPSILON * (fabs(seen(x[d], before)) + fabs(other)) + ldexp(1, -148);
        }
        if (bf16)
            bound += ldexp(fabs(exact) + bound, -8) + ldexp(1, -133);
        conform_close(c, (double)want[d], exact, bound, "reference row %d d %d of %d", row, d,
                      a->head_dim);
    }
}

static void compare(struct conform *c, const struct tec_rope_args *a, int row, bool bf16)
{
    ptrdiff_t dim = a->head_dim;
    const float *x = a->qkv + (size_t)row * (size_t)a->ld;
    size_t cols = (size_t)a->kv_heads * (size_t)a->head_dim, at = (size_t)a->slot[row] * cols;
    float head[512];
    if (a->q_at >= 0)
        for (int h = 0; h < a->heads; h++)
            compare_head(c, a, x + a->q_at + h * dim, row,
                         (const float *)c->want[2] + (size_t)row * (size_t)a->ldq + h * dim, bf16,
                         bf16 && a->round_q);
    for (int h = 0; h < a->kv_heads; h++) {
        for (int d = 0; d < a->head_dim; d++) {
            size_t i = at + (size_t)(h * dim + d);
            head[d] = bf16 ? tec_bf16_float(((const uint16_t *)c->want[0])[i])
                           : ((const float *)c->want[0])[i];
            float v = bf16 ? tec_bf16_float(((const uint16_t *)c->want[1])[i])
                           : ((const float *)c->want[1])[i];
            conform_close(c, (double)v, seen(x[a->v_at + h * dim + d], bf16), 0,
                          "reference v of row %d", row);
        }
        compare_head(c, a, x + a->k_at + h * dim, row, head, bf16, bf16 && a->round_k);
    }
}

/* Give distinct slots in no order, and any positions. */
static void place(struct conform *c, struct tec_rope_args *a, int rows, int slots)
{
    int *slot = conform_ints(c, (size_t)rows, 0), *pos = conform_ints(c, (size_t)rows, 0);
    int stride = 2 * conform_int(0, slots / 2 - 1) + 1, first = conform_int(0, slots - 1);
    for (int r = 0; r < rows; r++) { /* slots is a power of two: an odd stride meets each once */
        slot[r] = (first + r * stride) % slots;
        pos[r] = conform_int(0, POSITIONS - 1);
    }
    a->slot = slot;
    a->pos = a->cos_sin ? pos : NULL;
}

static void rope_shape(struct conform *c, struct shape s, bool bf16, enum conform_family family)
{
    int q = s.heads * s.dim, kv = s.kv_heads * s.dim, slots = 4;
    size_t size = bf16 ? 2 : 4;
    while (slots < s.rows)
        slots *= 2;
    struct tec_rope_args a = {.max_rows = s.rows,
                              .heads = s.heads,
                              .kv_heads = s.kv_heads,
                              .head_dim = s.dim,
                              .rows = conform_live(c, s.rows),
                              .round_q = conform_int(0, 1),
                              .round_k = conform_int(0, 1)};
    a.q_at = s.queries ? 0 : -1;
    a.k_at = s.queries ? tec_padded(q) : 0;
    a.v_at = a.k_at + tec_padded(kv);
    a.ld = conform_ld(a.v_at + kv);
    a.ldq = conform_ld(q);
    float *x = conform_buf(c, (size_t)s.rows * (size_t)a.ld, sizeof *x);
    conform_fill(x, (size_t)s.rows * (size_t)a.ld, family, 3.0F);
    a.qkv = x;
    a.cos_sin = s.rotated ? table(c, s.dim / 2) : NULL;
    place(c, &a, s.rows, slots);
    a.k = conform_buf(c, (size_t)slots * (size_t)kv, size);
    a.v = conform_buf(c, (size_t)slots * (size_t)kv, size);
    a.q = s.queries ? conform_buf(c, (size_t)s.rows * (size_t)a.ldq, sizeof *a.q) : NULL;
    struct conform_call call = {.ref = &a, .fast = &a, .live = s.rows, .full = true, .outs = 2};
    size_t row = (size_t)kv * size;
    call.out[0] = (struct conform_out){a.k, s.rows, row, row, a.slot, 0, 1};
    call.out[1] = (struct conform_out){a.v, s.rows, row, row, a.slot, 0, 1};
    if (s.queries)
        call.out[call.outs++] =
            (struct conform_out){a.q, s.rows, (size_t)q * 4, (size_t)a.ldq * 4, NULL, 0, 1};
    conform_run(c, &call);
    /* Every tier rounds the same products in the same order, so the bits are equal. */
    conform_same(c, 0, (size_t)slots * (size_t)kv * size, "k of %d rows, dim %d", s.rows, s.dim);
    conform_same(c, 1, (size_t)slots * (size_t)kv * size, "v of %d rows, dim %d", s.rows, s.dim);
    if (s.queries)
        conform_same(c, 2, (size_t)s.rows * (size_t)a.ldq * 4, "q of %d rows, dim %d", s.rows,
                     s.dim);
    for (int r = 0; r < s.rows; r += 1 + s.rows / 16)
        compare(c, &a, r, bf16);
    if (s.rows >= 51) {
        char name[40];
        snprintf(name, sizeof name, "%dx%dx%d", s.rows, s.heads, s.dim);
        conform_time(c, name, &call, s.rows * (double)(8 * q + 2 * kv * (4 + (int)size)), 0);
    }
    conform_end(c);
}

static void rope(struct conform *c, bool bf16)
{
    for (int i = 0; i < EDGES; i++) {
        struct shape s = edges[i];
        s.rows = conform_scale(c, s.rows, 64);
        rope_shape(c, s, bf16, CONFORM_NORMAL);
    }
    for (int i = 0; i < conform_few(c, RANDOM); i++) {
        bool rotated = conform_int(0, 3) > 0;
        struct shape s = {conform_int(1, 20),     conform_int(1, 6),     conform_int(1, 3),
                          2 * conform_int(1, 50), conform_int(0, 3) > 0, rotated};
        rope_shape(c, s, bf16, (enum conform_family)(i % CONFORM_FAMILIES));
    }
}

/* Rows of queries alone have neither keys nor values, nor a place for them. */
static void queries_alone(struct conform *c, bool bf16)
{
    for (int i = 0; i < 10; i++) {
        struct tec_rope_args a = {.max_rows = conform_int(1, 20),
                                  .heads = conform_int(1, 6),
                                  .head_dim = 2 * conform_int(1, 40),
                                  .round_q = conform_int(0, 1)};
        int q = a.heads * a.head_dim;
        a.rows = conform_live(c, a.max_rows);
        a.ld = conform_ld(q);
        a.ldq = conform_ld(q);
        float *x = conform_buf(c, (size_t)a.max_rows * (size_t)a.ld, sizeof *x);
        conform_fill(x, (size_t)a.max_rows * (size_t)a.ld, CONFORM_NORMAL, 3.0F);
        a.qkv = x;
        a.cos_sin = table(c, a.head_dim / 2);
        place(c, &a, a.max_rows, 64);
        a.q = conform_buf(c, (size_t)a.max_rows * (size_t)a.ldq, sizeof *a.q);
        struct conform_call call = {
            .ref = &a, .fast = &a, .live = a.max_rows, .full = true, .outs = 1};
        call.out[0] =
            (struct conform_out){a.q, a.max_rows, (size_t)q * 4, (size_t)a.ldq * 4, NULL, 0, 1};
        conform_run(c, &call);
        conform_same(c, 0, (size_t)a.max_rows * (size_t)a.ldq * 4, "q of %d rows, dim %d",
                     a.max_rows, a.head_dim);
        for (int r = 0; r < a.max_rows; r++)
            for (int h = 0; h < a.heads; h++)
                compare_head(c, &a, x + (ptrdiff_t)r * a.ld + h * a.head_dim, r,
                             (const float *)c->want[0] + (ptrdiff_t)r * a.ldq + h * a.head_dim,
                             bf16, bf16 && a.round_q);
        conform_end(c);
    }
}

void conform_rope_f32(struct conform *c)
{
    rope(c, false);
    queries_alone(c, false);
}

void conform_rope_bf16(struct conform *c)
{
    rope(c, true);
    queries_alone(c, true);
}
