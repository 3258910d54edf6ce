/* check_handed.c - checks that what a kernel leaves as bf16 terms for the product behind it gives
 * the bytes of float32 rows: behind norms, attention, and products that end with a gate or gelu. */
#include "kernels/device_kind.h"
#include "kernels/int8.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/cuda_tier.h"

#include <string.h>

enum { MOST = 6 };

/* Commands in a row; the one at `handing` alone writes rows[0 .. size - 1], which the next reads.
 */
struct chain_of {
    struct tec_capture_step commands[MOST];
    int n, handing;
    struct tec_gemm_args *reader;
    float *rows, *y;
    size_t size, y_size; /* bytes */
};

static float *filled(struct conform *c, size_t count, bool round)
{
    float *at = conform_buf(c, count, sizeof *at);
    conform_fill(at, count, CONFORM_NORMAL, 1.0F);
    if (round)
        conform_round(at, count);
    return at;
}

static void append(struct chain_of *l, enum tec_kernel_id kernel, const void *args, bool passes)
{
    l->commands[l->n++] = (struct tec_capture_step){
        .kind = TEC_RUN, .kernel = kernel, .args = args, .passes = passes};
}

/* A product of k columns that reads x. */
static struct tec_gemm_args *product_of(struct conform *c, const float *x, int ldx, const int *rows,
                                        int max_rows, int n, int k)
{
    struct tec_gemm_args *a = conform_buf(c, 1, sizeof *a);
    *a = (struct tec_gemm_args){.x = x, .ldx = ldx, .rows = rows, .max_rows = max_rows};
    a->n = n;
    a->k = k;
    a->ldy = conform_ld(n);
    a->w = conform_matrix(c, c->fast, true, n, k, filled(c, (size_t)n * (size_t)k, true));
    a->bias = conform_int(0, 1) ? filled(c, (size_t)n, false) : NULL;
    a->y = conform_buf(c, (size_t)max_rows * (size_t)a->ldy, sizeof *a->y);
    if (conform_int(0, 1)) {
        a->fixed = conform_ints(c, 1, conform_int(0, max_rows));
        a->fixed_gate = filled(c, (size_t)n, false);
    }
    return a;
}

/* The product at the end, which reads what was made: `round`: bf16 values. */
static void append_reader(struct conform *c, struct chain_of *l, float *made, int ld,
                          const int *rows, int max_rows, int cols, bool round)
{
    int n = 16 * conform_int(1, conform_int(0, 3) ? 4 : 20);
    struct tec_gemm_args *a = product_of(c, made, ld, rows, max_rows, n, cols);
    a->rounded = round && conform_int(0, 3) != 0;
    a->add = conform_int(0, 1);
    conform_fill(a->y, (size_t)max_rows * (size_t)a->ldy, CONFORM_NORMAL, 1.0F);
    append(l, TEC_KERNEL_gemm_bf16, a, false);
    l->handing = l->n - 2;
    l->reader = a;
    l->rows = made;
    l->size = (size_t)max_rows * (size_t)ld * sizeof *made;
    l->y = a->y;
    l->y_size = (size_t)max_rows * (size_t)a->ldy * sizeof *a->y;
}

static struct tec_norm_args *append_norm(struct conform *c, struct chain_of *l, bool centred,
                                         const int *rows, int max_rows, int cols)
{
    struct tec_norm_args *a = conform_buf(c, 1, sizeof *a);
    *a = (struct tec_norm_args){.cols = cols, .rows = rows, .max_rows = max_rows, .eps = 1e-6F};
    a->ldx = conform_ld(cols);
    a->ldy = conform_ld(cols);
    a->x = filled(c, (size_t)max_rows * (size_t)a->ldx, false);
    a->y = conform_buf(c, (size_t)max_rows * (size_t)a->ldy, sizeof *a->y);
    a->offset = (float)conform_int(0, 1);
    a->weight = filled(c, (size_t)cols, false);
    a->bias = conform_int(0, 1) ? filled(c, (size_t)cols, false) : NULL;
    a->round = conform_int(0, 1);
    append(l, centred ? TEC_KERNEL_layernorm : TEC_KERNEL_rmsnorm, a, true);
    return a;
}

static struct chain_of behind_norm(struct conform *c, bool centred, int max_rows, int cols)
{
    struct chain_of l = {.n = 0};
    const int *rows = conform_live(c, max_rows - conform_int(0, 9));
    struct tec_norm_args *a = append_norm(c, &l, centred, rows, max_rows, cols);
    append_reader(c, &l, a->y, a->ldy, rows, max_rows, cols, a->round);
    return l;
}

/* A norm and a product with 8-bit weights. */
static struct chain_of behind_norm_bytes(struct conform *c, bool centred, int max_rows, int cols)
{
    struct chain_of l = {.n = 0};
    const int *rows = conform_live(c, max_rows - conform_int(0, 9));
    struct tec_norm_args *a = append_norm(c, &l, centred, rows, max_rows, cols);
    append_reader(c, &l, a->y, a->ldy, rows, max_rows, cols, false);
    int n = l.reader->n;
    void *w = conform_buf(c, tec_int8_size(n, cols), 1);
    memset(w, 0, tec_int8_size(n, cols));
    tec_int8_pack(w, n, cols, 0, n, filled(c, (size_t)n * (size_t)cols, false));
    l.reader->w = w;
    l.reader->digits = conform_int(0, 2);
    l.commands[l.n - 1].kernel = TEC_KERNEL_gemm_int8;
    return l;
}

/* [norm], product, gate or gelu, and the product that reads that. */
static struct chain_of behind_finish(struct conform *c, enum tec_kernel_id then, int max_rows,
                                     int cols)
{
    struct chain_of l = {.n = 0};
    bool gated = then == TEC_KERNEL_gelu_mul || then == TEC_KERNEL_silu_mul;
    int k = 8 * conform_int(2, 30), ld = conform_ld(cols), round = conform_int(0, 1);
    const int *rows = conform_live(c, max_rows - conform_int(0, 9));
    struct tec_norm_args *norm = NULL;
    if (conform_int(0, 1))
        norm = append_norm(c, &l, false, rows, max_rows, k);
    int ldx = norm ? norm->ldy : conform_ld(k), n = (gated ? 2 : 1) * cols + 16;
    float *x = norm ? norm->y : filled(c, (size_t)max_rows * (size_t)ldx, false);
    struct tec_gemm_args *a = product_of(c, x, ldx, rows, max_rows, n, k);
    float *y = conform_buf(c, (size_t)max_rows * (size_t)ld, sizeof *y);
    append(&l, TEC_KERNEL_gemm_bf16, a, true);
    if (gated) {
        struct tec_gated_args *g = conform_buf(c, 1, sizeof *g);
        *g = (struct tec_gated_args){
            a->y, y, rows, max_rows, a->ldy, ld, cols, 16 * conform_int(0, 1), 0, round};
        g->up_at = g->gate_at + cols;
        append(&l, then, g, true);
    } else {
        struct tec_map_args *m = conform_buf(c, 1, sizeof *m);
        *m = (struct tec_map_args){a->y, y, rows, max_rows, a->ldy, ld, cols, round};
        append(&l, then, m, true);
    }
    append_reader(c, &l, y, ld, rows, max_rows, cols, round);
    return l;
}

/* Heads so narrow that all their columns are whole blocks; `may`: no kernel for wide heads. */
static struct chain_of behind_attention(struct conform *c, bool bf16, int dim, bool *may)
{
    struct chain_of l = {.n = 0};
    struct case_shape s = {.seqs = conform_int(1, 2), .rows = conform_int(70, 80), .keys = 150};
    s.heads = 2;
    s.kv_heads = conform_int(1, 2);
    s.dim = dim;
    s.view = (enum case_view)conform_int(CASE_ALL, CASE_SOME);
    s.round = conform_int(0, 1);
    struct attention_case w = case_build(c, s, bf16, CONFORM_NORMAL);
    struct tec_attention_args *a = conform_buf(c, 1, sizeof *a);
    *a = w.a;
    a->terms = bf16 ? 0 : 2;
    *may = !a->window && !(a->cap > 0.0F);
    append(&l, bf16 ? TEC_KERNEL_attention_bf16 : TEC_KERNEL_attention_f32, a, true);
    append_reader(c, &l, a->out, a->ldo, a->rows, a->max_rows, s.heads * dim, s.round);
    return l;
}

/* What the commands come to, from the same bytes each time; the kernels that were started. */
static int run_list(struct chain_of *l, bool passes, const float *before, float *y)
{
    struct tec_capture list = {.commands = l->commands, .n = l->n};
    memcpy(l->y, before, l->y_size);
    memset(l->rows, 0xff, l->size);
    l->commands[l->handing].passes = passes;
    int kernels = cuda_tier_list(&list);
    memcpy(y, l->y, l->y_size);
    return kernels;
}

/* Whether nobody wrote to the rows. */
static bool untouched(const struct chain_of *l)
{
    const unsigned char *at = (const unsigned char *)l->rows;
    for (size_t i = 0; i < l->size; i++)
        if (at[i] != 0xff)
            return false;
    return true;
}

/* `must`: the last product's x is left as terms, which saves a kernel. Attention may use its output
 * for sums. */
static void compare_lists(struct conform *c, struct chain_of *l, bool must)
{
    enum tec_kernel_id kernel = l->commands[l->handing].kernel;
    const char *name = tec_kernel_infos[kernel].name;
    bool attends = kernel == TEC_KERNEL_attention_bf16 || kernel == TEC_KERNEL_attention_f32;
    float *before = conform_buf(c, l->y_size, 1), *apart = conform_buf(c, l->y_size, 1);
    float *y = conform_buf(c, l->y_size, 1);
    memcpy(before, l->y, l->y_size);
    int kernels = run_list(l, false, before, apart);
    int fewer = kernels - run_list(l, true, before, y);
    if (fewer != must)
        conform_fail(c, "%s before a product: %d kernels fewer", name, fewer);
    if (must && !attends && !untouched(l))
        conform_fail(c, "%s writes rows that it leaves as terms", name);
    if (memcmp(apart, y, l->y_size) != 0)
        conform_fail(c, "%s before a product: its bytes differ", name);
    conform_end(c);
}

/* Not all rows have room as terms. */
static void handed_parts(struct conform *c)
{
    const size_t tile = 128 * 64 * 4; /* rows, columns, bytes of two terms */
    for (int i = 0; i < 4; i++) {
        cuda_tier_room(i % 2 ? tile : 2 * tile, i < 2 ? tile : 2 * tile);
        struct chain_of l = behind_norm(c, false, 140, 64);
        l.reader->rounded = 0;
        compare_lists(c, &l, cuda_tier_reads_terms() && i >= 2);
    }
    cuda_tier_room(0, 0);
}

/* A finish leaves rows of eight tiles in the memory that its own product does not read: that for
 * sums, where they have room only every other time, or that for terms where a norm has left up to
 * 192 columns of the first product's x among the sums, in whole blocks of 16. */
static void handed_rooms(struct conform *c)
{
    const size_t tile = 128 * 64 * 4;
    for (int i = 0; i < 6; i++) {
        cuda_tier_room(i % 2 ? 6 * tile : 16 * tile, 16 * tile);
        struct chain_of l = behind_finish(c, TEC_KERNEL_gelu_mul, 140, 256);
        const struct tec_gemm_args *first = l.commands[l.n - 3].args;
        bool among_sums = l.n == 4 && first->k <= 192 && first->k % 16 == 0;
        l.reader->rounded = 0;
        compare_lists(c, &l, cuda_tier_reads_terms() && (i % 2 == 0 || among_sums));
    }
    cuda_tier_room(0, 0);
}

/* A norm leaves digits of whole groups of k, for many rows; not where 128 of 140 rows find room. */
static void handed_digits(struct conform *c)
{
    for (int i = 0; i < 8; i++) {
        int cols = 128 * conform_int(1, i == 7 ? 20 : 4) + (i == 3 ? 64 : 0);
        int rows = i == 5 ? 140 : conform_int(65, 150);
        struct chain_of l = behind_norm_bytes(c, i % 2, rows, cols);
        cuda_tier_room(0, i == 5 ? (size_t)cols * (2 * 128 + 4) : 0);
        compare_lists(c, &l, i != 3 && i != 5);
    }
    cuda_tier_room(0, 0);
}

void conform_handed(struct conform *c)
{
    static const enum tec_kernel_id thens[] = {TEC_KERNEL_gelu, TEC_KERNEL_gelu_erf,
                                               TEC_KERNEL_gelu_mul, TEC_KERNEL_silu_mul};
    static const int dims[] = {16, 72, 128, 256};
    enum { DIMS = sizeof dims / sizeof dims[0] };
    bool groups = cuda_tier_reads_terms();
    cuda_tier_plan_for(0, 1); /* nothing is left idle: 65 rows are many */
    for (int i = 0; i < 6; i++) {
        bool odd = i == 5; /* columns that are no whole blocks of 16 */
        int cols = 16 * conform_int(1, i < 4 ? 8 : 40) + 4 * odd;
        struct chain_of l = behind_norm(c, i % 2, conform_int(65, 150), cols);
        compare_lists(c, &l, groups && !odd);
    }
    for (int i = 0; i < 8; i++) {
        struct chain_of l =
            behind_finish(c, thens[i % 4], conform_int(65, 150), 16 * conform_int(1, 9));
        compare_lists(c, &l, groups);
    }
    for (int i = 0; i < 6; i++) {
        bool may, bf16 = i % 2;
        int dim = dims[conform_int(0, DIMS - 1)];
        struct chain_of l = behind_attention(c, bf16, dim, &may);
        compare_lists(c, &l, groups && may && (bf16 || dim <= 128));
    }
    handed_digits(c);
    handed_parts(c);
    handed_rooms(c);
    cuda_tier_plan_for(0, 0);
}
