/* Products with what stands behind them in one kernel, against the kernels one by one. */
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"

#include <string.h>

static const float *values(struct conform *c, size_t count, bool round)
{
    float *at = conform_buf(c, count, sizeof *at);
    conform_fill(at, count, CONFORM_NORMAL, 1.0F);
    if (round)
        conform_round(at, count);
    return at;
}

/* A product whose y only the next kernel reads. */
static struct tec_gemm_args product(struct conform *c, int rows, int n, int k)
{
    struct tec_gemm_args a = {.max_rows = rows, .n = n, .k = k};
    a.ldx = conform_ld(k);
    a.ldy = conform_ld(n);
    a.x = values(c, (size_t)rows * (size_t)a.ldx, false);
    a.w = conform_matrix(c, c->fast, true, n, k, values(c, (size_t)n * (size_t)k, true));
    a.bias = conform_int(0, 1) ? values(c, (size_t)n, false) : NULL;
    a.y = conform_buf(c, (size_t)rows * (size_t)a.ldy, sizeof *a.y);
    a.rows = conform_live(c, conform_int(0, 3) ? rows : conform_int(0, rows));
    if (conform_int(0, 1)) {
        a.fixed = conform_ints(c, 1, conform_int(0, rows));
        a.fixed_gate = values(c, (size_t)n, false);
    }
    return a;
}

/* What a next kernel writes. */
struct place {
    void *at;
    size_t size;
};

enum { PLACES = 3 };

/* Both ways from the same bytes. `must`: they are done together. */
static void both(struct conform *c, const struct tec_gemm_args *gemm, enum tec_kernel_id next,
                 const void *args, const struct place *places, int n, bool must)
{
    void *before[PLACES], *apart[PLACES];
    struct tec_part part = {0, 1};
    for (int i = 0; i < n; i++) {
        before[i] = memcpy(conform_buf(c, places[i].size, 1), places[i].at, places[i].size);
        apart[i] = conform_buf(c, places[i].size, 1);
    }
    c->fast->gemm_bf16(gemm, part);
    tec_kernel_infos[next].run(c->fast, args, part);
    for (int i = 0; i < n; i++) {
        memcpy(apart[i], places[i].at, places[i].size);
        memcpy(places[i].at, before[i], places[i].size);
    }
    const char *name = tec_kernel_infos[next].name;
    bool done = cuda_tier_chain(NULL, gemm, next, args);
    if (done != must)
        conform_fail(c, "%s behind a product of %d rows: %s", name, gemm->max_rows,
                     done ? "done together" : "not done together");
    for (int i = 0; done && i < n; i++)
        if (memcmp(apart[i], places[i].at, places[i].size) != 0)
            conform_fail(c, "%s behind a product [%dx%dx%d], %d live: output %d differs", name,
                         gemm->max_rows, gemm->n, gemm->k, *gemm->rows, i);
    conform_end(c);
}

static void gelu(struct conform *c, int rows, int k)
{
    struct tec_gemm_args a = product(c, rows, 16 * conform_int(1, 9), k);
    struct tec_map_args m = {.x = a.y, .rows = a.rows, .max_rows = rows, .ldx = a.ldy};
    m.cols = a.n - conform_int(0, 15);
    m.ldy = conform_ld(m.cols);
    m.round = conform_int(0, 1);
    m.y = conform_buf(c, (size_t)rows * (size_t)m.ldy, sizeof *m.y);
    struct place out = {m.y, (size_t)rows * (size_t)m.ldy * sizeof *m.y};
    both(c, &a, TEC_KERNEL_gelu, &m, &out, 1, rows > 32);
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

static void gated(struct conform *c, int rows, int k)
{
    struct tec_gemm_args a = product(c, rows, 32 * conform_int(1, 6), k);
    struct tec_gated_args g = gated_args(c, &a);
    struct place out = {g.y, (size_t)rows * (size_t)g.ldy * sizeof *g.y};
    both(c, &a, TEC_KERNEL_gelu_mul, &g, &out, 1, true);
}

/* Output over the input: blocks would overwrite what others still read. */
static void over_input(struct conform *c)
{
    struct tec_gemm_args a = product(c, 20, 64, 200);
    struct tec_gated_args g = gated_args(c, &a);
    a.x = g.y;
    a.ldx = g.ldy;
    a.k = 16;
    if (cuda_tier_chain(NULL, &a, TEC_KERNEL_gelu_mul, &g))
        conform_fail(c, "a product is done together with what overwrites its input");
    conform_end(c);
}

static const int *ints(struct conform *c, int n, int step, int first)
{
    int *at = conform_ints(c, (size_t)n, 0);
    for (int i = 0; i < n; i++)
        at[i] = first + i * step;
    return at;
}

/* Heads, where they lie in q | k | v, and which rows of tables. */
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

static void rope(struct conform *c, int rows, int k, bool rotated)
{
    struct tec_rope_args p = rope_args(c, rows, rotated);
    size_t kv = (size_t)(p.kv_heads * p.head_dim), q = (size_t)rows * (size_t)p.ldq * sizeof *p.q;
    size_t size = ((size_t)rows + 3) * kv * (rotated ? 2 : 4);
    struct tec_gemm_args a = product(c, rows, p.v_at + tec_padded((int)kv), k);
    p.qkv = a.y;
    p.ld = a.ldy;
    p.rows = a.rows;
    p.q = conform_buf(c, q, 1);
    p.k = conform_buf(c, size, 1);
    p.v = conform_buf(c, size, 1);
    struct place out[PLACES] = {{p.q, q}, {p.k, size}, {p.v, size}};
    both(c, &a, rotated ? TEC_KERNEL_rope_bf16 : TEC_KERNEL_rope_f32, &p, out, PLACES,
         rotated || rows > 32);
}

void conform_chains(struct conform *c)
{
    static const int rows[] = {1, 8, 13, 16, 29, 51, 70};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int k = 40; k < 600; k += 500) {
            gelu(c, rows[i], k);
            gated(c, rows[i], k);
            rope(c, rows[i], k, true);
            rope(c, rows[i], k, false);
        }
    over_input(c);
}
