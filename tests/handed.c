/* handed.c - which kernels of a recorded list leave their rows as bf16 terms for the product behind
 * them, by the rules that the CUDA device and its model have in common. */
#include "kernels/cuda/chain_terms.h"
#include "kernels/grids.h"
#include "tests/tap.h"

#include <string.h>

static const struct tec_cuda_facts h100 = {
    .capability = 90,
    .processors = 132,
    .groups = true,
    .partials_size = TEC_CUDA_PARTIALS,
    .terms_size = TEC_CUDA_TERMS,
    .squares_size = TEC_CUDA_SQUARES,
};
static const struct tec_cuda_facts ada = {
    .capability = 89,
    .processors = 128,
    .partials_size = TEC_CUDA_PARTIALS,
    .terms_size = TEC_CUDA_TERMS,
    .squares_size = TEC_CUDA_SQUARES,
};

/* A layer of a text: norm, gate and up, gate, down. Nothing is read or written: addresses will do.
 */
enum { WIDTH = 2048, INNER = 16384, COMMANDS = 4 };
static int rows;

static float *array(int i)
{
    return (float *)((uintptr_t)(i + 1) << 36);
}

struct layer {
    struct tec_norm_args norm;
    struct tec_gemm_args gate_up, down;
    struct tec_gated_args gate;
    struct tec_capture_step commands[COMMANDS];
    struct tec_capture capture;
};

static struct tec_capture_step step(enum tec_kernel_id kernel, const void *args, bool passes)
{
    return (struct tec_capture_step){
        .kind = TEC_RUN, .kernel = kernel, .args = args, .passes = passes};
}

static struct tec_gemm_args product(const float *x, float *y, int n, int k, int max_rows)
{
    return (struct tec_gemm_args){
        .x = x, .y = y, .rows = &rows, .max_rows = max_rows, .ldx = k, .ldy = n, .n = n, .k = k};
}

static void make(struct layer *l, int max_rows)
{
    float *x = array(0), *mid = array(1), *both = array(2), *inner = array(3);
    l->norm = (struct tec_norm_args){.x = x, .y = mid, .rows = &rows, .max_rows = max_rows};
    l->norm.cols = l->norm.ldx = l->norm.ldy = WIDTH;
    l->gate_up = product(mid, both, 2 * INNER, WIDTH, max_rows);
    l->gate =
        (struct tec_gated_args){both, inner, &rows, max_rows, 2 * INNER, INNER, INNER, 0, INNER, 0};
    l->down = product(inner, x, WIDTH, INNER, max_rows);
    l->down.add = 1;
    l->commands[0] = step(TEC_KERNEL_rmsnorm, &l->norm, true);
    l->commands[1] = step(TEC_KERNEL_gemm_bf16, &l->gate_up, true);
    l->commands[2] = step(TEC_KERNEL_gelu_mul, &l->gate, true);
    l->commands[3] = step(TEC_KERNEL_gemm_bf16, &l->down, false);
    l->capture = (struct tec_capture){.commands = l->commands, .n = COMMANDS};
}

struct starts {
    int n;
    struct tec_grid items[16];
};

static void keep(void *user, const struct tec_grid *grid)
{
    struct starts *to = user;
    REQUIRE(to->n < 16);
    to->items[to->n++] = *grid;
}

static struct starts starts_of(const struct layer *l, const struct tec_cuda_facts *facts)
{
    struct starts starts = {.n = 0};
    for (int at = 0; at < l->capture.n;)
        at += tec_grids_at(&l->capture, at, facts, keep, &starts);
    return starts;
}

static int writers(const struct starts *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += s->items[i].writes_terms;
    return n;
}

static struct chain_handed to(const struct layer *l, int at, const struct tec_cuda_facts *facts)
{
    return chain_handed_to(&l->capture, at, facts);
}

/* 816 rows are seven tiles of 128: of 2048 columns 7 MiB, of 16384 the terms are 56 MiB. */
TEST(a_layer_starts_three_kernels)
{
    struct layer l;
    make(&l, 816);
    struct starts s = starts_of(&l, &h100);
    REQUIRE(s.n == 3);
    CHECK_INT(s.items[0].kernel, ==, TEC_KERNEL_rmsnorm);
    CHECK_INT(s.items[0].made_terms, ==, 2);
    CHECK(strcmp(s.items[0].what, "terms") == 0);
    CHECK_INT(s.items[1].then, ==, TEC_CUDA_THEN_gelu_mul);
    CHECK_INT(s.items[1].made_terms, ==, 2);
    CHECK(strcmp(s.items[1].what, "terms_wide") == 0);
    CHECK_INT(s.items[2].made_terms, ==, 0);
    CHECK_INT(s.items[2].rows, ==, 816);
    CHECK(to(&l, 1, &h100).x == l.norm.y);
    CHECK(to(&l, 1, &h100).among_sums);
    CHECK_INT(to(&l, 1, &h100).k, ==, WIDTH);
    CHECK(to(&l, 3, &h100).x == l.gate.y);
    CHECK(!to(&l, 3, &h100).among_sums);
    CHECK(to(&l, 0, &h100).x == NULL);
    CHECK(to(&l, 2, &h100).x == NULL);
    CHECK(to(&l, 4, &h100).x == NULL);
}

/* One term where x is said to hold bf16 values; each product by itself. */
TEST(a_product_of_one_term_is_left_one)
{
    struct layer l;
    make(&l, 816);
    l.down.rounded = 1;
    CHECK_INT(to(&l, 1, &h100).terms, ==, 2);
    CHECK_INT(to(&l, 3, &h100).terms, ==, 1);
    CHECK_INT(starts_of(&l, &h100).items[1].made_terms, ==, 1);
}

/* 64 MiB hold 1024 rows of 16384 columns; 32 MiB, those for sums, 4096 of 2048 columns. */
TEST(what_has_no_room_is_written_in_parts)
{
    struct layer l;
    make(&l, 1024);
    struct starts s = starts_of(&l, &h100);
    CHECK_INT(s.n, ==, 3);
    make(&l, 1025);
    s = starts_of(&l, &h100);
    CHECK_INT(s.n, ==, 6);
    CHECK_INT(writers(&s), ==, 2);
    CHECK_INT(s.items[0].made_terms, ==, 2);
    CHECK_INT(s.items[1].made_terms, ==, 0);
    make(&l, 4096);
    CHECK(to(&l, 1, &h100).among_sums);
    make(&l, 4097);
    CHECK(to(&l, 1, &h100).x == l.norm.y);
    CHECK(!to(&l, 1, &h100).among_sums);
}

/* Without the norm x of the first product is in the memory for terms; that for sums holds 512 rows
 * of 16384 columns. */
TEST(a_finish_leaves_terms_where_its_own_product_has_none)
{
    struct layer l;
    make(&l, 512);
    l.commands[0].passes = false;
    struct starts s = starts_of(&l, &h100);
    CHECK_INT(s.n, ==, 4);
    CHECK_INT(writers(&s), ==, 1);
    CHECK(to(&l, 3, &h100).among_sums);
    make(&l, 513);
    CHECK(to(&l, 3, &h100).x == l.gate.y);
    l.commands[0].passes = false;
    CHECK(to(&l, 3, &h100).x == NULL);
}

/* 8-bit weights, on any device: with more than 64 rows, or more than 32 where blocks are more than
 * processors; in whole groups of 128 k. 64 MiB hold one digit of 31744 rows of 2048 columns. */
TEST(a_norm_leaves_digits_of_many_rows)
{
    struct layer l;
    const struct tec_cuda_facts *devices[] = {&ada, &h100};
    for (int i = 0; i < 2; i++) {
        make(&l, 816);
        l.commands[1].kernel = TEC_KERNEL_gemm_int8;
        l.gate_up.digits = 1;
        struct chain_handed made = to(&l, 1, devices[i]);
        CHECK(made.x == l.norm.y && !made.among_sums);
        CHECK_INT(made.digits, ==, 1);
        CHECK_INT(made.rows, ==, 816);
        CHECK_INT(made.terms, ==, 0);
        struct starts s = starts_of(&l, devices[i]);
        CHECK(strcmp(s.items[0].what, "digits") == 0);
        CHECK_INT(s.items[0].made_digits, ==, 1);
        CHECK(strcmp(s.items[1].what, i ? "int8_many_groups_one_128" : "int8_many_mma_one_128") ==
              0);
        CHECK_INT(s.items[1].made_digits, ==, 0);
        l.gate_up.digits = 0;
        CHECK_INT(to(&l, 1, devices[i]).digits, ==, 2);
    }
    static const struct {
        int rows, n, k;
        bool left;
    } all[] = {{65, 2048, 2048, true},    {64, 2048, 2048, false},  {33, 32768, 2048, true},
               {32, 32768, 2048, false},  {816, 2048, 2112, false}, {31744, 2048, 2048, true},
               {31745, 2048, 2048, false}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        make(&l, all[i].rows);
        l.commands[1].kernel = TEC_KERNEL_gemm_int8;
        l.gate_up.digits = 1;
        l.gate_up.n = all[i].n;
        l.gate_up.k = l.gate_up.ldx = l.norm.cols = l.norm.ldy = all[i].k;
        CHECK_INT(to(&l, 1, &ada).x != NULL, ==, all[i].left);
    }
}

TEST(nothing_is_left_where_nobody_reads_terms)
{
    struct layer l;
    make(&l, 816);
    CHECK(to(&l, 1, &ada).x == NULL);
    CHECK(to(&l, 3, &ada).x == NULL);
    make(&l, 64); /* tiles of rows that their blocks read as float32 */
    CHECK(to(&l, 1, &h100).x == NULL);
    CHECK(to(&l, 3, &h100).x == NULL);
}

TEST(nothing_is_left_that_others_read_or_that_is_not_all_of_x)
{
    struct layer l;
    int others = 0;
    for (int i = 0; i < 7; i++) {
        make(&l, 816);
        l.commands[0].passes = i != 0;
        l.gate_up.x += i == 1;
        l.gate_up.ldx += i == 2;
        l.gate_up.k -= i == 3 ? 64 : 0;
        l.gate_up.rows = i == 4 ? &others : &rows;
        l.commands[1].joins = i == 5;
        l.commands[1].branch = i == 6;
        CHECK(to(&l, 1, &h100).x == NULL);
    }
    make(&l, 816); /* columns that are no whole blocks of 16 k */
    l.norm.cols = l.gate_up.k = WIDTH - 8;
    CHECK(to(&l, 1, &h100).x == NULL);
    make(&l, 816);
    l.commands[1].passes = false; /* the gate is a kernel of its own */
    CHECK(to(&l, 3, &h100).x == NULL);
    make(&l, 816);
    l.gate_up.add = 1; /* the same */
    CHECK(to(&l, 3, &h100).x == NULL);
}

/* Eight heads that share one key: a small tile has two rows, so 408 rows fill an H100 with tiles,
 * and 200 share their keys among blocks. */
TEST(attention_leaves_terms_where_a_block_has_all_keys)
{
    struct layer l;
    struct tec_attention_args a = {.out = array(1), .rows = &rows, .heads = 8, .kv_heads = 1};
    a.head_dim = 256;
    a.ldo = WIDTH;
    for (int i = 0; i < 4; i++) {
        bool f32 = i == 2;
        a.max_rows = i == 1 ? 200 : 408;
        a.window = i == 3 ? 100 : 0;
        make(&l, a.max_rows);
        l.commands[0] = step(f32 ? TEC_KERNEL_attention_f32 : TEC_KERNEL_attention_bf16, &a, true);
        CHECK_INT(to(&l, 1, &h100).x != NULL, ==, i == 0);
    }
    a.window = 0; /* a tower */
    a.heads = a.kv_heads = 16;
    a.head_dim = 128;
    for (a.terms = 0; a.terms <= 2; a.terms += 2) {
        a.max_rows = 768;
        make(&l, a.max_rows);
        l.commands[0] = step(TEC_KERNEL_attention_f32, &a, true);
        CHECK_INT(to(&l, 1, &h100).x != NULL, ==, a.terms == 2);
    }
}

/* Behind a product that adds to the norm's x. Up to 64 rows the norm is in the next product, with
 * sums of squares that are left, and nobody reads terms; with more it is a kernel that leaves
 * terms, and no sums are left. So x is never made twice, nor by nobody. */
TEST(a_norm_is_in_its_product_or_leaves_terms)
{
    struct layer l;
    struct tec_capture_step commands[COMMANDS + 1];
    for (int n = 17; n <= 200; n++) {
        make(&l, n);
        commands[0] = l.commands[COMMANDS - 1];
        memcpy(commands + 1, l.commands, sizeof l.commands);
        l.capture = (struct tec_capture){.commands = commands, .n = COMMANDS + 1};
        struct starts s = starts_of(&l, &h100);
        int sums = 0, norms = 0, in_front = 0, terms = 0;
        for (int i = 0; i < s.n; i++) {
            const struct tec_grid *g = &s.items[i];
            sums += g->leaves;
            norms += g->kernel == TEC_KERNEL_rmsnorm && g->made_terms == 2;
            in_front += g->norm && g->left;
            terms += g->made_terms > 0 || g->writes_terms;
        }
        bool few = n <= 64;
        CHECK_INT(sums, ==, few);
        CHECK_INT(in_front, ==, few);
        CHECK_INT(norms, ==, !few);
        CHECK_INT(terms > 0, ==, !few);
        CHECK(!few || s.n == 3);
    }
}

TAP_MAIN
