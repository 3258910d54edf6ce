/* check_chains.c - checks that a matrix product fused with the kernels before and after it gives
 * the bytes of the kernels run one by one: the product of the kernel that is checked. */
#include "kernels/int8.h"
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"

#include <string.h>

static float *values(struct conform *c, size_t count, bool round)
{
    float *at = conform_buf(c, count, sizeof *at);
    conform_fill(at, count, CONFORM_NORMAL, 1.0F);
    if (round)
        conform_round(at, count);
    return at;
}

static bool is_int8(const struct conform *c)
{
    return c->id == TEC_KERNEL_gemm_int8;
}

static void multiply(struct conform *c, const struct tec_gemm_args *a)
{
    tec_kernel_infos[c->id].run(c->fast, a, (struct tec_part){0, 1});
}

static const void *weights(struct conform *c, int n, int k)
{
    const float *w = values(c, (size_t)n * (size_t)k, !is_int8(c));
    if (!is_int8(c))
        return conform_matrix(c, c->fast, true, n, k, w);
    size_t size = tec_int8_size(n, k);
    void *packed = memset(conform_buf(c, size, 1), 0, size);
    tec_int8_pack(packed, n, k, 0, n, w);
    return packed;
}

/* Make a product whose y only the next kernel reads. */
static struct tec_gemm_args product(struct conform *c, int rows, int n, int k)
{
    struct tec_gemm_args a = {.max_rows = rows, .n = n, .k = k};
    a.digits = is_int8(c) ? conform_int(1, 2) : 0;
    a.ldx = conform_ld(k);
    a.ldy = conform_ld(n);
    a.x = values(c, (size_t)rows * (size_t)a.ldx, false);
    a.w = weights(c, n, k);
    a.bias = conform_int(0, 1) ? values(c, (size_t)n, false) : NULL;
    a.y = conform_buf(c, (size_t)rows * (size_t)a.ldy, sizeof *a.y);
    a.rows = conform_live(c, conform_int(0, 3) ? rows : conform_int(0, rows));
    if (conform_int(0, 1)) {
        a.fixed = conform_ints(c, 1, conform_int(0, rows));
        a.fixed_gate = values(c, (size_t)n, false);
    }
    return a;
}

/* Make a norm whose y only the product reads: the norm then takes x in its place. */
static struct tec_norm_args norm_of(struct conform *c, struct tec_gemm_args *gemm)
{
    struct tec_norm_args a = {.x = gemm->x, .ldx = gemm->ldx, .cols = gemm->k, .rows = gemm->rows};
    size_t cols = (size_t)gemm->k;
    a.max_rows = gemm->max_rows;
    a.ldy = conform_ld(a.cols);
    a.y = conform_buf(c, (size_t)a.max_rows * (size_t)a.ldy, sizeof *a.y);
    gemm->x = a.y;
    gemm->ldx = a.ldy;
    a.eps = 1e-6F;
    a.offset = (float)conform_int(0, 1);
    a.weight = conform_int(0, 3) ? values(c, cols, false) : NULL;
    a.bias = conform_int(0, 1) ? values(c, cols, false) : NULL;
    a.round = conform_int(0, 1);
    if (conform_int(0, 1)) {
        a.fixed = conform_ints(c, 1, conform_int(-1, a.max_rows + 1));
        a.fixed_weight = conform_int(0, 3) ? values(c, cols, false) : NULL;
        a.fixed_bias = conform_int(0, 1) ? values(c, cols, false) : NULL;
    }
    return a;
}

/* A place that a next kernel writes to. */
struct place {
    void *at;
    size_t size;
};

enum { PLACES = 3 };
#define NOTHING TEC_KERNEL_COUNT

/* What went wrong with a start: its grid, or what the emulator found. */
static void check_trouble(struct conform *c)
{
    const char *trouble = cuda_tier_trouble();
    if (trouble)
        conform_fail(c, "%s", trouble);
}

/* Run all ways from the same bytes. `must`: they have to be fused. */
static void both(struct conform *c, const struct tec_norm_args *norm,
                 const struct tec_gemm_args *gemm, enum tec_kernel_id next, const void *args,
                 const struct place *places, int n, bool must)
{
    void *before[PLACES], *apart[PLACES];
    struct tec_part part = {0, 1};
    const char *front = norm ? "a norm, " : "";
    const char *name = next == NOTHING ? "nothing" : tec_kernel_infos[next].name;
    for (int i = 0; i < n; i++) {
        before[i] = memcpy(conform_buf(c, places[i].size, 1), places[i].at, places[i].size);
        apart[i] = conform_buf(c, places[i].size, 1);
    }
    if (norm)
        c->fast->rmsnorm(norm, part);
    multiply(c, gemm);
    if (next != NOTHING)
        tec_kernel_infos[next].run(c->fast, args, part);
    if (norm) /* ignored when they are fused */
        memset(norm->y, 0xff, (size_t)norm->max_rows * (size_t)norm->ldy * sizeof *norm->y);
    for (int i = 0; i < n; i++) {
        memcpy(apart[i], places[i].at, places[i].size);
        memcpy(places[i].at, before[i], places[i].size);
    }
    bool done = cuda_tier_chain(c->id, norm, gemm, next, args, false);
    if (done != must)
        conform_fail(c, "%s%s behind a product of %d rows: %s", front, name, gemm->max_rows,
                     done ? "done together" : "not done together");
    for (int i = 0; done && i < n; i++)
        if (memcmp(apart[i], places[i].at, places[i].size) != 0)
            conform_fail(c, "%s%s behind a product [%dx%dx%d], %d live: output %d differs", front,
                         name, gemm->max_rows, gemm->n, gemm->k, *gemm->rows, i);
    check_trouble(c);
    conform_end(c);
}

/* What stands before the product: a norm or nothing. */
struct front {
    struct tec_norm_args args;
    const struct tec_norm_args *norm;
    bool may;
};

static void put_front(struct conform *c, struct front *f, bool norm, struct tec_gemm_args *gemm)
{
    f->norm = NULL;
    f->may = true;
    if (!norm)
        return;
    f->args = norm_of(c, gemm);
    f->norm = &f->args;
    f->may = gemm->max_rows <= cuda_tier_norm_rows(c->id, gemm, false) && gemm->k % 4 == 0;
}

static void alone(struct conform *c, int rows, int k)
{
    struct tec_gemm_args a = product(c, rows, 16 * conform_int(1, 9), k);
    struct front f;
    put_front(c, &f, true, &a);
    struct place out = {a.y, (size_t)rows * (size_t)a.ldy * sizeof *a.y};
    both(c, f.norm, &a, NOTHING, NULL, &out, 1, f.may);
}

static void map(struct conform *c, enum tec_kernel_id next, int rows, int k, bool norm)
{
    struct tec_gemm_args a = product(c, rows, 16 * conform_int(1, 9), k);
    struct tec_map_args m = {.x = a.y, .rows = a.rows, .max_rows = rows, .ldx = a.ldy};
    m.cols = a.n - conform_int(0, 15);
    m.ldy = conform_ld(m.cols);
    m.round = conform_int(0, 1);
    m.y = conform_buf(c, (size_t)rows * (size_t)m.ldy, sizeof *m.y);
    struct place out = {m.y, (size_t)rows * (size_t)m.ldy * sizeof *m.y};
    struct front f;
    put_front(c, &f, norm, &a);
    both(c, f.norm, &a, next, &m, &out, 1, f.may && !norm && rows > 32);
}

static struct tec_gated_args gated_args(struct conform *c, const struct tec_gemm_args *a)
{
    struct tec_gated_args g = {.x = a->y, .rows = a->rows, .max_rows = a->max_rows};
    g.ldx = a->ldy;
    g.up_at = a->n / 2;
    g.cols = a->n / 2 - conform_int(0, 15);
    g.ldy = conform_ld(g.cols);
    g.round = conform_int(0, 1);
    g.y = conform_buf(c, (size_t)a->max_rows * (size_t)g.ldy, sizeof *g.y);
    return g;
}

static void gated(struct conform *c, enum tec_kernel_id next, int rows, int k, bool norm)
{
    struct tec_gemm_args a = product(c, rows, 32 * conform_int(1, 6), k);
    struct tec_gated_args g = gated_args(c, &a);
    struct place out = {g.y, (size_t)rows * (size_t)g.ldy * sizeof *g.y};
    struct front f;
    put_front(c, &f, norm, &a);
    both(c, f.norm, &a, next, &g, &out, 1, f.may);
}

/* Output over the input must not be fused, because blocks would overwrite what others still
 * read. */
static void over_input(struct conform *c)
{
    struct tec_gemm_args a = product(c, 20, 64, 200);
    struct tec_gated_args g = gated_args(c, &a);
    a.x = g.y;
    a.ldx = g.ldy;
    a.k = 16;
    if (cuda_tier_chain(c->id, NULL, &a, TEC_KERNEL_gelu_mul, &g, false))
        conform_fail(c, "a product is done together with what overwrites its input");
    conform_end(c);
    struct tec_gemm_args p = product(c, 20, 64, 64);
    float *x = values(c, (size_t)20 * (size_t)p.ldx, false);
    p.x = x;
    struct tec_norm_args n = norm_of(c, &p);
    p.y = x;
    p.ldy = n.ldx;
    if (cuda_tier_chain(c->id, &n, &p, NOTHING, NULL, false))
        conform_fail(c, "a norm is done together with a product that overwrites its input");
    conform_end(c);
}

static const int *ints(struct conform *c, int n, int step, int first)
{
    int *at = conform_ints(c, (size_t)n, 0);
    for (int i = 0; i < n; i++)
        at[i] = first + i * step;
    return at;
}

/* Choose the heads, their places in q | k | v, and the rows of the tables. */
static struct tec_rope_args rope_args(struct conform *c, int rows, bool rotated)
{
    int heads = conform_int(1, 3), dim = rotated ? 32 * conform_int(1, 3) : 8 * conform_int(1, 5);
    struct tec_rope_args p = {.heads = 2 * heads, .kv_heads = heads, .head_dim = dim};
    bool queries = conform_int(0, 2) > 0;
    p.q_at = queries ? 0 : -1;
    p.k_at = queries ? (p.heads * dim + 15) / 16 * 16 : 0;
    p.v_at = p.k_at + (heads * dim + 15) / 16 * 16;
    p.ldq = conform_ld(p.heads * dim);
    p.slot = ints(c, rows, -1, rows + 1);
    p.pos = ints(c, rows, 1, 2);
    p.cos_sin = rotated ? values(c, ((size_t)rows + 2) * (size_t)dim, false) : NULL;
    p.max_rows = rows;
    p.round_q = conform_int(0, 1);
    p.round_k = conform_int(0, 1);
    return p;
}

static void rope(struct conform *c, int rows, int k, bool rotated, bool norm)
{
    struct tec_rope_args p = rope_args(c, rows, rotated);
    size_t kv = (size_t)p.kv_heads * (size_t)p.head_dim,
           q = (size_t)rows * (size_t)p.ldq * sizeof *p.q;
    size_t size = ((size_t)rows + 3) * kv * (rotated ? 2 : 4);
    struct tec_gemm_args a = product(c, rows, p.v_at + tec_padded((int)kv), k);
    p.qkv = a.y;
    p.ld = a.ldy;
    p.rows = a.rows;
    p.q = conform_buf(c, q, 1);
    p.k = conform_buf(c, size, 1);
    p.v = conform_buf(c, size, 1);
    struct place out[PLACES] = {{p.q, q}, {p.k, size}, {p.v, size}};
    struct front f;
    put_front(c, &f, norm, &a);
    both(c, f.norm, &a, rotated ? TEC_KERNEL_rope_bf16 : TEC_KERNEL_rope_f32, &p, out, PLACES,
         f.may && (rotated ? cuda_tier_rope_fits(c->id, &a, &p) : !norm && rows > 32));
}

/* A product that adds to the rows of a norm, and the product behind that, with gelu_mul or alone:
 * the norm by itself, by blocks that measure, and by blocks that add up what was left. */
struct adding {
    struct tec_gemm_args first, second;
    struct tec_norm_args norm;
    struct tec_gated_args gated;
    bool gates;
    struct place x, out;
    void *before;
};

static struct adding adding(struct conform *c, int rows, int cols, int k, bool gates)
{
    struct adding a = {.first = product(c, rows, cols, k), .gates = gates};
    float *x = values(c, (size_t)rows * (size_t)a.first.ldy, false);
    a.first.y = x;
    a.first.add = 1;
    a.second = product(c, rows, 32 * conform_int(1, 3), cols);
    a.second.x = x;
    a.second.ldx = a.first.ldy;
    a.second.rows = a.first.rows;
    a.norm = norm_of(c, &a.second);
    a.gated = gated_args(c, &a.second);
    a.x = (struct place){x, (size_t)rows * (size_t)a.first.ldy * sizeof *x};
    a.out = (struct place){a.second.y, (size_t)rows * (size_t)a.second.ldy * sizeof *x};
    if (gates)
        a.out = (struct place){a.gated.y, (size_t)rows * (size_t)a.gated.ldy * sizeof *x};
    a.before = memcpy(conform_buf(c, a.x.size, 1), x, a.x.size);
    return a;
}

static bool together(struct conform *c, const struct adding *a, bool left)
{
    enum tec_kernel_id next = a->gates ? TEC_KERNEL_gelu_mul : NOTHING;
    memcpy(a->x.at, a->before, a->x.size);
    if (left)
        cuda_tier_leave(c->id, &a->first);
    else
        multiply(c, &a->first);
    return cuda_tier_chain(c->id, &a->norm, &a->second, next, a->gates ? &a->gated : NULL, left);
}

static void squares(struct conform *c, int rows, int cols, int k, bool gates)
{
    struct adding a = adding(c, rows, cols, k, gates);
    void *apart = conform_buf(c, a.out.size, 1), *x = conform_buf(c, a.x.size, 1);
    void *unset = memcpy(conform_buf(c, a.out.size, 1), a.out.at, a.out.size);
    struct tec_part part = {0, 1};
    multiply(c, &a.first);
    c->fast->rmsnorm(&a.norm, part);
    multiply(c, &a.second);
    if (gates)
        c->fast->gelu_mul(&a.gated, part);
    memcpy(apart, a.out.at, a.out.size);
    memcpy(x, a.x.at, a.x.size);
    memset(a.norm.y, 0xff, (size_t)rows * (size_t)a.norm.ldy * sizeof *a.norm.y);
    for (int left = 0; left < 2; left++) {
        memcpy(a.out.at, unset, a.out.size);
        bool done = together(c, &a, left),
             must = rows <= cuda_tier_norm_rows(c->id, &a.second, left);
        if (done != must)
            conform_fail(c, "%d rows, sums %sleft: %s", rows, left ? "" : "not ",
                         done ? "done together" : "not done together");
        if (memcmp(x, a.x.at, a.x.size) != 0)
            conform_fail(c, "[%dx%dx%d]: what leaves sums writes other rows", rows, cols, k);
        if (done && memcmp(apart, a.out.at, a.out.size) != 0)
            conform_fail(c, "[%dx%dx%d], %d live, sums %sleft: the norm differs", rows, cols, k,
                         *a.first.rows, left ? "" : "not ");
        check_trouble(c);
    }
    conform_end(c);
}

/* Rows of every tile; less than the 64 sums of panels, all of them, and more; one split and
 * several. */
static void all_squares(struct conform *c)
{
    static const int rows[] = {1, 7, 8, 15, 16, 17, 32, 33, 51, 64};
    static const int columns[] = {16, 112, 128, 400, 1024, 1040, 2064};
    enum { ROWS = sizeof rows / sizeof rows[0], COLUMNS = sizeof columns / sizeof columns[0] };
    for (int i = 0; i < ROWS; i++) {
        cuda_tier_plan_for(0, i % 2 ? 1 : 1000);
        squares(c, rows[i], columns[i % 4], 600, i % 3 == 0);
        squares(c, rows[i], columns[conform_int(0, COLUMNS - 1)], 40, true);
        squares(c, rows[i], columns[conform_int(0, COLUMNS - 1)], 40, false);
    }
    cuda_tier_plan_for(0, 0);
    for (int i = 0; i < COLUMNS; i++)
        squares(c, conform_int(1, 64), columns[i], 32, i % 2);
}

/* Check every pair and every triple at this size, for a device that the tiles fill or leave
 * idle. */
static void chains(struct conform *c, int rows, int k)
{
    cuda_tier_plan_for(0, conform_int(0, 1) ? 1 : 1000);
    for (int norm = 0; norm < 2; norm++) {
        map(c, TEC_KERNEL_gelu, rows, k, norm);
        map(c, TEC_KERNEL_gelu_erf, rows, k, norm);
        gated(c, TEC_KERNEL_gelu_mul, rows, k, norm);
        gated(c, TEC_KERNEL_silu_mul, rows, k, norm);
        rope(c, rows, k, true, norm);
        rope(c, rows, k, false, norm);
    }
    alone(c, rows, k);
    cuda_tier_plan_for(0, 0);
}

void conform_chains(struct conform *c)
{
    static const int rows[] = {1, 8, 13, 16, 29, 51, 64, 70};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int k = 40; k < 600; k += 500)
            chains(c, rows[i], k);
        cuda_tier_clusters(false); /* four splits, whose last block adds all */
        if (rows[i] > 16 && cuda_tier_reads_terms() && !is_int8(c))
            chains(c, rows[i], 540);
        cuda_tier_clusters(true);
    }
    /* rows of which a thread holds less than a quad, one, and more */
    static const int columns[] = {4, 132, 254, 1024, 1028, 2600};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        alone(c, conform_int(1, 64), columns[i]);
        gated(c, TEC_KERNEL_gelu_mul, conform_int(1, 64), columns[i], true);
    }
    over_input(c);
    all_squares(c);
}
