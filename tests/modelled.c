/* modelled.c - the model of kernels' times: grids worked out by hand, times worked out by hand, and
 * what an H100 took of the layers that the model was not fitted to. */
#include "tools/measure/modelled.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/device_kind.h"
#include "tests/kernels/bench_layers.h"
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tec_cuda_facts h100 = {
    90, 132, true, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS, TEC_CUDA_SQUARES, TEC_CUDA_CLUSTERS};
static const struct tec_cuda_facts ada = {
    89, 128, false, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS, TEC_CUDA_SQUARES, 0};
static const struct tec_cuda_facts orin = {
    87, 16, false, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS, TEC_CUDA_SQUARES, 0};

static const struct tec_peak *peak_of(const char *name)
{
    for (int i = 0; i < tec_n_peaks; i++)
        if (strcmp(tec_peaks[i].name, name) == 0)
            return &tec_peaks[i];
    return NULL;
}

/* --- grids ----------------------------------------------------------------------------------- */

struct grids {
    int n;
    struct tec_grid items[8];
};

static void keep(void *user, const struct tec_grid *grid)
{
    struct grids *to = user;
    if (to->n < 8)
        to->items[to->n] = *grid;
    to->n++;
}

static struct grids product_of(enum tec_kernel_id kernel, const struct tec_cuda_facts *facts,
                               struct tec_gemm_args *a)
{
    struct grids grids = {0};
    a->ldx = a->k;
    a->ldy = a->n;
    tec_grids_of(kernel, a, facts, keep, &grids);
    return grids;
}

static struct grids product(const struct tec_cuda_facts *facts, struct tec_gemm_args *a)
{
    return product_of(TEC_KERNEL_gemm_bf16, facts, a);
}

static bool is(const struct tec_grid *g, const char *what, unsigned x, unsigned y, unsigned z)
{
    bool same =
        strcmp(g->what, what) == 0 && g->blocks[0] == x && g->blocks[1] == y && g->blocks[2] == z;
    if (!same)
        fprintf(stderr, "# %s %u x %u x %u\n", g->what, g->blocks[0], g->blocks[1], g->blocks[2]);
    return same;
}

/* 51 rows, 2560 columns: 20 tiles of 128; 128 blocks are wanted, so 7 splits of 64 blocks of 16 k,
 * in whole steps of four: 12 each, which makes 6 splits. */
TEST(few_rows_are_split_into_blocks)
{
    struct tec_gemm_args a = {.max_rows = 51, .n = 2560, .k = 1024};
    struct grids g = product(&h100, &a);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "groups_64", 1, 20, 6));
    CHECK_INT(g.items[0].threads, ==, 256);
    CHECK_INT(g.items[0].choice.split.each, ==, 12);
    a = (struct tec_gemm_args){.max_rows = 51, .n = 1024, .k = 2048};
    g = product(&h100, &a);
    CHECK(is(&g.items[0], "groups_64", 1, 8, 16));
    a = (struct tec_gemm_args){.max_rows = 6, .n = 32768, .k = 2048};
    g = product(&h100, &a);
    CHECK(is(&g.items[0], "groups_8", 1, 256, 1));
}

/* The splits of a tile of 17 rows and more are a cluster where there are 3 to 16 of them, there is
 * room for so many, and a block has one of them. */
TEST(splits_are_clusters_where_they_find_room)
{
    static const struct {
        int rows, n, k;
        unsigned splits, cluster;
    } all[] = {{51, 1024, 2048, 16, 16}, {17, 2560, 1024, 6, 6},  {64, 2560, 1024, 6, 6},
               {16, 1024, 2048, 16, 1},  {51, 1024, 256, 2, 1},   {51, 1024, 384, 3, 3},
               {51, 128, 2176, 17, 1},   {51, 32768, 2048, 1, 1}, {70, 512, 2048, 16, 16}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct tec_gemm_args a = {.max_rows = all[i].rows, .n = all[i].n, .k = all[i].k};
        struct tec_cuda_facts facts = h100;
        struct grids g = product(&facts, &a);
        REQUIRE(g.n == 1);
        CHECK_INT(g.items[0].blocks[2], ==, all[i].splits);
        CHECK_INT(g.items[0].cluster, ==, all[i].cluster);
        facts.clusters &= ~(1U << all[i].splits);
        CHECK_INT(product(&facts, &a).items[0].cluster, ==, 1);
    }
}

/* 532 rows: 5 tiles of 128. Of 32768 columns without splits the widest tile is the cheapest: 5
 * waves of 32 x 2700 + 4000 clocks are less than 10 of 32 x 1460 + 4000 or 9 of 32 x 1960 + 4000.
 */
TEST(many_rows_take_the_tile_of_fewest_clocks)
{
    struct tec_gemm_args a = {.max_rows = 532, .n = 32768, .k = 2048};
    struct grids g = product(&h100, &a);
    REQUIRE(g.n == 2);
    CHECK(is(&g.items[0], "row_terms", 8, 67, 1));
    CHECK(is(&g.items[1], "terms_wide", 5, 128, 1));
    a = (struct tec_gemm_args){.max_rows = 532, .n = 2048, .k = 16384};
    g = product(&h100, &a);
    REQUIRE(g.n == 2);
    CHECK(is(&g.items[0], "row_terms", 64, 67, 1));
    CHECK(is(&g.items[1], "terms_128", 5, 16, 1));
}

/* 64 MiB hold the terms of 1024 rows of 16384 columns: 2000 rows go in two parts. */
TEST(rows_without_room_for_their_terms_go_in_parts)
{
    struct tec_gemm_args a = {.max_rows = 2000, .n = 2048, .k = 16384};
    struct grids g = product(&h100, &a);
    REQUIRE(g.n == 4);
    CHECK_INT(g.items[1].rows, ==, 1024);
    CHECK_INT(g.items[2].first, ==, 1024);
    CHECK_INT(g.items[2].shared, ==, 0);
    CHECK_INT(g.items[3].rows, ==, 976);
}

/* 8-bit weights. Of 64 rows 20 tiles leave most of a 4090 idle, so their blocks make the digits
 * themselves; 256 do not, and more rows never do. A warp has 8 rows of a group of 128 k, a block
 * four. Of 712 rows 6 x 16 tiles of 128 x 128 are one wave there, as 12 x 16 of 128 x 64 would be
 * two, for 16 and 20 of their cost; 8 x 9 of 128 x 64 and 512 rows are one of 10. */
TEST(digits_of_many_rows_are_written_first)
{
    static const struct {
        int rows, n, k, digits;
        const char *what;
        unsigned x, y;
    } all[] = {{64, 2560, 1024, 1, "int8_few_mma_one_64", 1, 20},
               {64, 32768, 1024, 1, "int8_many_mma_one_64", 1, 256},
               {32, 32768, 1024, 2, "int8_few_mma_two_32", 1, 512},
               {65, 2560, 1024, 2, "int8_many_mma_two_narrow", 2, 40},
               {712, 2048, 16384, 1, "int8_many_mma_one_128", 6, 16},
               {512, 1152, 1152, 1, "int8_many_mma_one_64", 8, 9},
               {712, 32768, 2048, 0, "int8_many_mma_two_128", 6, 256}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct tec_gemm_args a = {.max_rows = all[i].rows, .n = all[i].n, .k = all[i].k};
        a.digits = all[i].digits;
        struct grids g = product_of(TEC_KERNEL_gemm_int8, &ada, &a);
        bool first = strstr(all[i].what, "many") != NULL;
        REQUIRE(g.n == 1 + first);
        CHECK(is(&g.items[first], all[i].what, all[i].x, all[i].y, 1));
        CHECK(!first || is(&g.items[0], "row_digits", (unsigned)all[i].k / 512 + !!(all[i].k % 512),
                           (unsigned)ceil_div(all[i].rows, 8), 1));
    }
}

/* 64 MiB hold two digits of 128 groups of 1920 rows and a few more, with their units. */
TEST(rows_without_room_for_their_digits_go_in_parts)
{
    struct tec_gemm_args a = {.max_rows = 2000, .n = 2048, .k = 16384};
    struct grids g = product_of(TEC_KERNEL_gemm_int8, &orin, &a);
    REQUIRE(g.n == 4);
    CHECK_INT(g.items[1].rows, ==, 1920);
    CHECK_INT(g.items[2].first, ==, 1920);
    CHECK_INT(g.items[3].first, ==, 1920);
    CHECK_INT(g.items[3].rows, ==, 80);
}

/* Without warp groups: 532 rows and 2560 columns are 5 x 20 tiles of 128 x 128, fewer than the 128
 * processors, so 64 rows by 128 columns, walking over splits; Orin's 16 have tiles enough of 16384
 * columns. 512 rows and 4304 columns are 136 tiles, of whose second wave 8 are left: 32 sixteenths
 * of a wave; 272 small ones are three waves of 9. With one term these are 33. */
TEST(other_devices_take_tiles_that_leave_no_processor_idle)
{
    struct tec_gemm_args a = {.max_rows = 532, .n = 2560, .k = 2048};
    struct grids g = product(&ada, &a);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "rows_64", 9, 20, 1));
    CHECK(g.items[0].choice.walk);
    a.n = 16384;
    g = product(&orin, &a);
    CHECK(is(&g.items[0], "rows_128", 5, 128, 1));
    a = (struct tec_gemm_args){.max_rows = 512, .n = 4304, .k = 1152};
    g = product(&ada, &a);
    CHECK(is(&g.items[0], "rows_64", 8, 34, 1));
    a.rounded = true;
    g = product(&ada, &a);
    CHECK(is(&g.items[0], "rounded_rows_128", 4, 34, 1));
}

/* 13 tiles of rows by 16 of columns on 128 processors: two waves of 512 steps and 2 around them are
 * more than seven of 128, 2 and 4, and 8 for the sums. 9 by 16 are two waves, too, and 576 blocks
 * five. Of 2048 k two waves of 66 are less than seven of 22. */
TEST(splits_are_blocks_where_that_takes_fewer_steps)
{
    struct tec_gemm_args a = {.max_rows = 820, .n = 2048, .k = 16384};
    struct grids g = product(&ada, &a);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "rows_64", 13, 16, 4));
    a.max_rows = 532;
    g = product(&ada, &a);
    CHECK(is(&g.items[0], "rows_64", 9, 16, 4));
    a = (struct tec_gemm_args){.max_rows = 820, .n = 2048, .k = 2048};
    g = product(&ada, &a);
    CHECK(is(&g.items[0], "rows_64", 13, 16, 1));
}

/* 64 rows of 256 columns, with 64 keys and values, take 158,048 bytes of shared memory, their
 * answers 67,584 more. Half of 132 multiprocessors have a large tile of 528 rows of eight heads. */
TEST(large_tiles_of_attention_go_where_their_memory_is)
{
    static const struct {
        int capability, rows;
    } all[] = {{80, 16}, {86, 16}, {87, 16}, {89, 16}, {90, 64}, {100, 64}, {110, 64}, {120, 16}};
    const struct tec_attention_args a = {
        .max_rows = 1024, .heads = 8, .kv_heads = 1, .head_dim = 256};
    CHECK_INT(bf16_shared_size(64, 1, 256), ==, 158048);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct tec_cuda_facts facts = {all[i].capability, 20, false, TEC_CUDA_PARTIALS, 0, 0, 0};
        CHECK_INT(attention_choose_bf16(&a, &facts).m, ==, all[i].rows);
    }
    struct tec_attention_args rows = a;
    rows.max_rows = 521;
    CHECK_INT(attention_choose_bf16(&rows, &h100).m, ==, 64);
    CHECK(attention_choose_bf16(&rows, &h100).plan.near);
    CHECK_INT(attention_choose_bf16(&rows, &h100).shared, ==, 158048 + 67584);
    rows.max_rows = 520;
    CHECK_INT(attention_choose_bf16(&rows, &h100).m, ==, 16);
    /* Of 32 heads with keys of their own one row or 32 fill as many large tiles as small ones, or
     * half as many: small ones. */
    struct tec_cuda_facts thor = {110, 20, true, TEC_CUDA_PARTIALS, 0, 0, 0};
    rows = (struct tec_attention_args){.max_rows = 7, .heads = 32, .kv_heads = 32, .head_dim = 128};
    CHECK_INT(attention_choose_bf16(&rows, &thor).m, ==, 16);
    rows.max_rows = 32;
    CHECK_INT(attention_choose_bf16(&rows, &thor).m, ==, 16);
    rows.max_rows = 33;
    CHECK_INT(attention_choose_bf16(&rows, &thor).m, ==, 64);
}

/* 51 rows of 8 heads are 26 tiles of 16 packed rows: 6 blocks for 132 processors share the keys of
 * each, and a run may begin at both rows of a tile. */
TEST(keys_of_few_rows_are_shared)
{
    struct tec_attention_args a = {.max_rows = 51, .heads = 8, .kv_heads = 1, .head_dim = 256};
    struct grids g = {0};
    tec_grids_of(TEC_KERNEL_attention_bf16, &a, &h100, keep, &g);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "16 rows", 52, 1, 6));
    CHECK_INT(g.items[0].shared, ==, 90272); /* bytes: two fit 228 KiB */
    a = (struct tec_attention_args){.max_rows = 0, .heads = 8, .kv_heads = 1, .head_dim = 256};
    g.n = 0;
    tec_grids_of(TEC_KERNEL_attention_bf16, &a, &h100, keep, &g);
    CHECK_INT(g.n, ==, 0);
}

/* --- lists ----------------------------------------------------------------------------------- */

/* A product that adds to x, a norm of x, a product of that; what another list has in its place. */
enum {
    AS_IT_IS,
    A_MARK_BETWEEN,
    A_LOOP_BETWEEN,
    OF_A_BRANCH,
    BEHIND_A_BRANCH,
    ANOTHER_X,
    OTHER_ROWS,
    OVERWRITES,
    READ_ELSEWHERE,
    PART_OF_X,
    FEW_NUMBERS,
    NO_ROOM,
    LISTS
};

enum { X_ROWS = 64, X_COLS = 1024, Y_COLS = 2048 };
static _Alignas(16) float list_x[X_ROWS * X_COLS], list_y[X_ROWS * Y_COLS], list_other[4];

struct list {
    struct tec_gemm_args adds, reads;
    struct tec_norm_args norm;
    struct tec_capture_step steps[6];
    struct tec_capture capture;
};

static struct tec_capture_step step_of(enum tec_kernel_id kernel, const void *args)
{
    return (struct tec_capture_step){.kind = TEC_RUN, .kernel = kernel, .args = args};
}

static void make_list(struct list *l, int about, int rows)
{
    static const int counts[2];
    int cols = about == FEW_NUMBERS ? 256 : X_COLS, n = 0;
    *l = (struct list){0};
    l->adds = (struct tec_gemm_args){.y = list_x, .rows = counts, .max_rows = rows, .ldy = cols};
    l->adds.n = about == PART_OF_X ? cols - 16 : cols;
    l->adds.k = l->adds.ldx = Y_COLS;
    l->adds.add = about != OVERWRITES;
    l->norm = (struct tec_norm_args){.x = list_x, .y = list_other, .rows = counts, .cols = cols};
    l->norm.max_rows = rows;
    l->norm.ldx = l->norm.ldy = cols;
    l->norm.x = about == ANOTHER_X ? list_x + 4 : list_x;
    l->norm.rows = about == OTHER_ROWS ? counts + 1 : counts;
    l->reads = (struct tec_gemm_args){.x = list_other, .y = list_y, .rows = l->norm.rows};
    l->reads.max_rows = rows;
    l->reads.k = l->reads.ldx = cols;
    l->reads.n = l->reads.ldy = Y_COLS;
    l->steps[n++] = step_of(TEC_KERNEL_gemm_bf16, &l->adds);
    l->steps[0].branch = about == OF_A_BRANCH;
    if (about == A_MARK_BETWEEN)
        l->steps[n++].kind = TEC_MARK;
    if (about == A_LOOP_BETWEEN)
        l->steps[n++].kind = TEC_REPEAT_END;
    l->steps[n] = step_of(TEC_KERNEL_rmsnorm, &l->norm);
    l->steps[n].joins = about == BEHIND_A_BRANCH;
    l->steps[n++].passes = about != READ_ELSEWHERE;
    l->steps[n++] = step_of(TEC_KERNEL_gemm_bf16, &l->reads);
    l->capture = (struct tec_capture){.commands = l->steps, .n = n};
}

static struct grids list_of(struct list *l, const struct tec_cuda_facts *facts)
{
    struct grids g = {0};
    for (int i = 0; i < l->capture.n;)
        i += tec_grids_at(&l->capture, i, facts, keep, &g);
    return g;
}

/* By warp groups 51 rows have a norm of their own, or begin with what was left; elsewhere they are
 * measured else. Anything in between, or another reader, could make what was left stale. */
TEST(sums_of_squares_are_left_for_what_directly_follows)
{
    struct list l;
    for (int about = 0; about < LISTS; about++) {
        const struct tec_cuda_facts *all[] = {&h100, &ada};
        for (int i = 0; i < 2; i++) {
            struct tec_cuda_facts facts = *all[i];
            int rows = about == FEW_NUMBERS ? 16 : 51;
            facts.squares_size = about == NO_ROOM ? 51 * 64 * 4 - 1 : 51 * 64 * 4;
            make_list(&l, about, rows);
            struct grids g = list_of(&l, &facts);
            bool left = about == AS_IT_IS, begins = left || !facts.groups || rows <= 16;
            begins = begins && about != READ_ELSEWHERE;
            REQUIRE(g.n == (begins ? 2 : 3));
            CHECK_INT(g.items[0].leaves, ==, left);
            CHECK_INT(g.items[1].left, ==, left);
            CHECK_INT(g.items[1].norm, ==, begins);
            CHECK_INT(g.items[0].norm || g.items[0].left || g.items[1].leaves, ==, false);
        }
    }
}

/* 8 rows of 1024 columns are many without warp groups, 17 with them. */
TEST(sums_of_squares_of_few_rows_are_not_left)
{
    static const struct {
        int rows;
        bool ada, h100;
    } all[] = {{1, false, false}, {7, false, false}, {8, true, false},
               {16, true, false}, {17, true, true},  {64, true, true}};
    struct list l;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        make_list(&l, AS_IT_IS, all[i].rows);
        CHECK_INT(list_of(&l, &ada).items[1].left, ==, all[i].ada);
        CHECK_INT(list_of(&l, &h100).items[1].left, ==, all[i].h100);
    }
}

/* Of 8-bit weights, which are multiplied by `mma` on every device: 8 rows of 1024 columns are many
 * on an H100, too. What is left, then gate and up in pairs, whose blocks have a scale of each row.
 */
TEST(products_of_8_bit_weights_leave_and_take_along)
{
    const struct tec_cuda_facts *all[] = {&h100, &ada};
    struct list l;
    make_list(&l, AS_IT_IS, 8);
    struct tec_gated_args gated = {.x = list_y, .y = list_x, .rows = l.reads.rows, .max_rows = 8};
    gated.ldx = Y_COLS;
    gated.ldy = gated.cols = gated.up_at = Y_COLS / 2;
    l.steps[0].kernel = l.steps[2].kernel = TEC_KERNEL_gemm_int8;
    l.adds.digits = l.reads.digits = 1;
    l.steps[2].passes = true;
    l.steps[3] = step_of(TEC_KERNEL_gelu_mul, &gated);
    l.capture.n = 4;
    for (int i = 0; i < 2; i++) {
        gated.y = list_other;
        struct grids g = list_of(&l, all[i]);
        REQUIRE(g.n == 2);
        CHECK(is(&g.items[0], "int8_few_mma_one_8", 1, X_COLS / 16, 1) && g.items[0].leaves);
        CHECK(is(&g.items[1], "int8_few_mma_one_8_pairs", 1, Y_COLS / 32, 1) && g.items[1].left);
        CHECK(g.items[1].norm && g.items[1].then == TEC_CUDA_THEN_gelu_mul);
        const struct gemm_tile *t = &gemm_tiles[GEMM_int8_few_mma_one_8_pairs];
        CHECK_INT(g.items[1].shared, ==, (size_t)t->shared + 8 * sizeof(float));
        CHECK_INT(g.items[1].registers, ==, t->normed);
        CHECK_INT(t->threads, ==, 512);
        gated.y = list_x; /* which other blocks still read */
        g = list_of(&l, all[i]);
        CHECK_INT(g.n, ==, 3);
        CHECK(g.items[1].norm && g.items[1].then == TEC_CUDA_THEN_NOTHING);
    }
}

/* Of 51 rows 8 tiles of 128 columns are more than seven processors, so digits are written first: a
 * product that has that done leaves no sums, and begins with no norm, but ends as others do. */
TEST(products_of_8_bit_weights_whose_digits_are_written_first)
{
    struct tec_cuda_facts few = ada;
    struct list l;
    make_list(&l, AS_IT_IS, 51);
    struct tec_gated_args gated = {.x = list_y, .y = list_x, .rows = l.reads.rows};
    gated.max_rows = 51;
    gated.ldx = Y_COLS;
    gated.ldy = gated.cols = gated.up_at = Y_COLS / 2;
    l.steps[0].kernel = l.steps[2].kernel = TEC_KERNEL_gemm_int8;
    l.adds.digits = l.reads.digits = 1;
    l.steps[2].passes = true;
    l.steps[3] = step_of(TEC_KERNEL_gelu_mul, &gated);
    l.capture.n = 4;
    few.terms_size = TEC_CUDA_TERMS;
    few.processors = 8; /* fewer than the second product's 16 tiles */
    struct grids g = list_of(&l, &few);
    REQUIRE(g.n == 3); /* the norm leaves the digits itself */
    CHECK(!g.items[0].leaves && g.items[1].kernel == TEC_KERNEL_rmsnorm);
    CHECK_INT(g.items[1].made_digits, ==, 1);
    CHECK(g.items[2].then == TEC_CUDA_THEN_gelu_mul && !g.items[2].norm);
    CHECK_INT((int)g.items[2].blocks[1] * gemm_tiles[g.items[2].choice.tile].columns, ==, Y_COLS);
    few.processors = 7; /* fewer than the first one's, too, which another norm is behind */
    l.reads.n = 896;
    l.steps[2].passes = false;
    l.capture.n = 3;
    g = list_of(&l, &few);
    REQUIRE(g.n == 3);
    CHECK_STR(g.items[0].what, "row_digits");
    CHECK(!g.items[1].leaves && g.items[2].norm && !g.items[2].left);
}

/* --- registers ------------------------------------------------------------------------------- */

/* The most that a line of tests/cuda_registers.expected has whose kernel begins and ends so, on 8.0
 * to 9.0 and 12.0: the model's constants are those of an H100. */
static int registers_of(const char *begin, const char *end)
{
    char line[300];
    int most = 0;
    FILE *file = fopen(TECTUM_SOURCE "/tests/cuda_registers.expected", "r");
    while (file && fgets(line, sizeof line, file)) {
        int of[5], at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%*s %d %d %d %d %*d %*d %d %*d %n", of, of + 1, of + 2, of + 3, of + 4,
                   &at) != 5)
            continue;
        size_t length = strlen(line), tail = strlen(end);
        if (strncmp(line + at, begin, strlen(begin)) != 0 || length < tail ||
            strcmp(line + length - tail, end) != 0)
            continue;
        for (int i = 0; i < 5; i++)
            most = of[i] > most ? of[i] : most;
    }
    if (file)
        fclose(file);
    return most;
}

TEST(tiles_have_the_registers_that_the_compiler_gave)
{
    char shape[80], begin[120];
#define MMA_TILE(name, terms, across, down, m, n, k, stages, registers, normed)                  \
    snprintf(shape, sizeof shape, "<shape<%d, %d, %d, %d, %d, %d, %d>,", terms, across, down, m, \
             n, k, stages);                                                                      \
    snprintf(begin, sizeof begin, "gemm_kernel%s", shape);                                       \
    CHECK_INT(registers_of(begin, ">"), ==, registers);                                          \
    snprintf(begin, sizeof begin, "gemm_normed_kernel%s", shape);                                \
    CHECK_INT(registers_of(begin, ">"), ==, normed);
#define GROUP_TILE(name, terms, n, groups, k, stages, registers)                                  \
    snprintf(begin, sizeof begin, "gemm_groups_kernel<group_shape<%d, %d, %d, %d, %d>", terms, n, \
             groups, k, stages);                                                                  \
    CHECK_INT(registers_of(begin, ">"), ==, registers);
#define TERMS_TILE(name, n, across, stages, resident, clocks, registers) \
    CHECK_INT(registers_of("gemm_terms_kernel<" #name "<", ">"), ==, registers);
#define INT4_FEW_MMA_TILE(name, x, deep, m, n, stages, registers)                               \
    snprintf(begin, sizeof begin,                                                               \
             "gemm_int4_few_mma_kernel<int4_few_mma_shape<%s, %d, %d, %d, %d>", #x, deep, m, n, \
             stages);                                                                           \
    CHECK_INT(registers_of(begin, ">"), ==, registers);
#define INT4_MANY_MMA_TILE(name, n, stages, whole, registers)                                     \
    snprintf(begin, sizeof begin, "gemm_int4_many_mma_kernel<int4_many_mma_shape<%d, %d, %s>", n, \
             stages, #whole);                                                                     \
    CHECK_INT(registers_of(begin, ">"), ==, registers);
#define INT8_FEW_MMA_TILE(name, digits, deep, across, n, registers, normed)                     \
    snprintf(shape, sizeof shape, "<int8_few_mma_shape<%d, %d, %d, %d>,", digits, deep, across, \
             n);                                                                                \
    snprintf(begin, sizeof begin, "gemm_int8_few_mma_kernel%s", shape);                         \
    CHECK_INT(registers_of(begin, ">"), ==, registers);                                         \
    snprintf(begin, sizeof begin, "gemm_int8_few_mma_normed_kernel%s", shape);                  \
    CHECK_INT(registers_of(begin, ">"), ==, normed);
#define INT8_MANY_MMA_TILE(name, digits, across, down, n, stages, resident, registers, ...)   \
    snprintf(begin, sizeof begin,                                                             \
             "gemm_int8_many_mma_kernel<int8_many_mma_shape<%d, %d, %d, %d, %d, %d>", digits, \
             across, down, n, stages, resident);                                              \
    CHECK_INT(registers_of(begin, ">"), ==, registers);
#define INT8_MANY_MMA_TILE(name, digits, across, down, n, stages, resident, registers, ...)   \
    snprintf(begin, sizeof begin,                                                             \
             "gemm_int8_many_mma_kernel<int8_many_mma_shape<%d, %d, %d, %d, %d, %d>", digits, \
             across, down, n, stages, resident);                                              \
    CHECK_INT(registers_of(begin, ">"), ==, registers);
#define INT8_MANY_GROUPS_TILE(name, digits, n, stages, resident, clocks, registers)            \
    snprintf(begin, sizeof begin,                                                              \
             "gemm_int8_many_groups_kernel<int8_many_groups_shape<%d, %d, %d, %d>", digits, n, \
             stages, resident);                                                                \
    CHECK_INT(registers_of(begin, ">"), ==, registers);
#define F32_TILE(name, columns, rows, m, n, chains, stages, registers)                             \
    snprintf(begin, sizeof begin, "gemm_kernel<tile<%d, %d, %d, %d, %d, %d>", columns, rows, m, n, \
             chains, stages);                                                                      \
    CHECK_INT(registers_of(begin, ">"), ==, registers);
#include "kernels/cuda/gemm_tiles.def"
}

/* --- times ----------------------------------------------------------------------------------- */

static struct tec_grid_time time_on(const char *machine, const struct tec_grid *grid,
                                    struct tec_grid_work work)
{
    const struct tec_changes none = {0};
    const struct tec_peak *peak = peak_of(machine);
    work.alone = true;
    return tec_grid_time_of(peak, tec_chip_of(peak), grid, &work, &none);
}

/* Of kernels as they were when an H100 was measured. */
static struct tec_grid_time measured_time(const struct tec_grid *grid, struct tec_grid_work work)
{
    const struct tec_changes then = {.as_measured = true};
    const struct tec_peak *peak = peak_of("h100");
    work.alone = true;
    return tec_grid_time_of(peak, tec_chip_of(peak), grid, &work, &then);
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-3 * b;
}

/* Gate and up of 51 rows: 64 x 2 blocks, 7 groups of live rows, 16 steps of 32 k: 1.1 to start, 1.6
 * + 7 x 0.54 for the one wave, two sums of 0.19 + 7 x 0.063; its 16.8 MB take 6 us. As it was
 * measured a step took 0.95 us; now 128 blocks read 56 rows of it at 0.6 of the L2's rate. */
TEST(a_product_of_few_rows_takes_its_steps_and_its_sums)
{
    struct tec_gemm_args a = {.max_rows = 51, .n = 8192, .k = 1024};
    struct grids g = product(&h100, &a);
    struct tec_grid_work work = {.rows = 51, .cost = {.weights = 8192 * 1024 * 2}};
    struct tec_grid_time then = measured_time(&g.items[0], work);
    struct tec_grid_time t = time_on("h100", &g.items[0], work);
    double around = 1.1 + 1.6 + 3.78 + 2 * 0.631;
    CHECK(near(then.us, around + 16 * 0.95));
    CHECK(near(t.us, around + 16 * 128 * 56 * 128 / (5500e3 * 0.6)));
    CHECK_INT(t.busy, ==, 128);
    CHECK_INT(t.resident, ==, 2);
    CHECK_INT(t.waves, ==, 1);
    CHECK_STR(then.bound, "wait");
    CHECK_STR(t.bound, "wait");
}

/* Grids point to arguments in the list, which lives as long as they. */
static struct grids behind_norm(struct list *l, int rows, int n)
{
    make_list(l, READ_ELSEWHERE, rows);
    l->norm.cols = l->reads.k = l->reads.ldx = X_COLS;
    l->reads.n = l->reads.ldy = n;
    l->steps[1].passes = true;
    l->capture.commands++; /* without the product in front */
    l->capture.n--;
    return list_of(l, &h100);
}

/* 16 of 132 multiprocessors: their rows come at once, and what four steps on their way share is
 * the old 0.95 us; of the sums of 8 splits each block adds one group of 8 rows at most. 9 rows,
 * with three steps of 64 k on their way, behind a norm, too. */
TEST(steps_of_few_rows_share_a_latency)
{
    struct list l;
    struct tec_gemm_args a = {.max_rows = 51, .n = 256, .k = 1024};
    struct grids g = product(&h100, &a);
    CHECK(is(&g.items[0], "groups_64", 1, 2, 8));
    struct tec_grid_time t = time_on("h100", &g.items[0], (struct tec_grid_work){.rows = 51});
    CHECK(near(t.us, 1.1 + 1.6 + 3.78 + 4 * 0.95 / 4 + 0.6 + 0.19 + 8 * 0.063));
    CHECK_STR(t.bound, "wait");
    g = behind_norm(&l, 16, 256);
    REQUIRE(g.n == 1);
    CHECK(g.items[0].norm);
    CHECK(is(&g.items[0], "groups_16", 1, 2, 8));
    t = time_on("h100", &g.items[0], (struct tec_grid_work){.rows = 9});
    CHECK(near(t.us, 1.1 + 1.6 + 2 * 0.54 + 2 * 0.95 / 3 + 8 * (0.19 + 2 * 0.063)));
}

/* 140 blocks, two on some of the multiprocessors, whose warps take 200 + 4 x 64 clocks each for the
 * terms of a step behind a norm, one after the other. At 990 MHz that is 0.92 us, and the
 * multiplies, at the rate of the H100, take 0.46. */
TEST(terms_of_few_rows_take_their_instructions)
{
    const struct tec_changes none = {0};
    const struct tec_peak *peak = peak_of("h100");
    const struct tec_grid_work work = {.rows = 51, .alone = true};
    struct tec_chip slow = *tec_chip_of(peak);
    struct list l;
    struct grids g = behind_norm(&l, 51, 140 * 128);
    REQUIRE(g.n == 2); /* by warp groups a norm of 51 rows is measured apart */
    struct tec_grid grid = g.items[1];
    grid.norm = true;
    CHECK(is(&grid, "groups_64", 1, 140, 1));
    slow.mhz = 990;
    struct tec_grid_time t = tec_grid_time_of(peak, &slow, &grid, &work, &none);
    double front = 4.0 * 51 * 140 * 1024 / (5500e3 * 0.6) - 2 * 1.6;
    CHECK(near(t.us, 1.1 + 2 * (1.6 + 3.78) + 32 * 2 * 456.0 / 990 + front));
    CHECK_STR(t.bound, "wait");
}

/* Of 6 rows, 134 MB at 93 % of 3000 GB/s, 48.1 us, are more than 32 steps; what finishes 8 rows is
 * behind them, of which the constants as they were fitted know nothing. */
TEST(a_product_of_very_few_rows_takes_its_bytes)
{
    struct tec_gemm_args a = {.max_rows = 6, .n = 32768, .k = 2048};
    struct grids g = product(&h100, &a);
    struct tec_grid_work work = {.rows = 6, .cost = {.weights = 134217728}};
    struct tec_grid_time t = measured_time(&g.items[0], work);
    CHECK(near(t.us, 1.1 + 134217728 / 2790e3));
    CHECK_STR(t.bound, "memory");
    t = time_on("h100", &g.items[0], work);
    CHECK(near(t.us, 1.1 + 0.54 + 134217728 / 2790e3));
    CHECK_STR(t.bound, "memory");
}

/* On an RTX 4090: each busy block reads 51 rows of 1024 columns at 0.6 of the L2's rate, less the
 * 1.5 us around a product, which hide a 16th of that whole. What leaves sums waits 0.7 us more. */
TEST(a_norm_in_front_takes_what_it_reads)
{
    struct list l;
    struct tec_grid_work work = {.rows = 51};
    make_list(&l, AS_IT_IS, 51);
    struct grids left = list_of(&l, &ada);
    l.capture.commands++; /* without the product in front */
    l.capture.n--;
    struct grids measured = list_of(&l, &ada);
    REQUIRE(left.n == 2 && measured.n == 1);
    struct tec_grid_time a = time_on("4090", &left.items[1], work);
    struct tec_grid_time b = time_on("4090", &measured.items[0], work);
    double slower = 1980.0 / tec_chip_of(peak_of("4090"))->mhz;
    double rate = tec_chip_of(peak_of("4090"))->l2_rate * 0.6e3;
    CHECK_INT(a.busy, ==, b.busy);
    CHECK(near(b.us - a.us, 4.0 * 51 * 1024 * (double)b.busy / rate - 1.5 * slower));
    struct tec_grid plain = left.items[0];
    plain.leaves = false;
    double leaves = time_on("4090", &left.items[0], work).us - time_on("4090", &plain, work).us;
    CHECK(near(leaves, 0.7 * slower));
}

/* 136 tiles of 128 x 128 on 132 processors, one each: a second wave for four of them. 18 steps of
 * 1460 clocks x 0.8 at 1.98 GHz and 7.6 us around, twice. */
TEST(a_tile_too_many_is_a_wave_more)
{
    struct tec_gemm_args a = {.max_rows = 512, .n = 4304, .k = 1152};
    struct grids g = product(&h100, &a);
    REQUIRE(g.n == 2);
    struct tec_grid_work work = {.rows = 512, .cost = {.weights = 4304 * 1152 * 2}};
    struct tec_grid_time t = time_on("h100", &g.items[1], work);
    CHECK(near(t.us, 1.1 + 2 * (7.6 + 18 * 0.8 * 1460 / 1980)));
    CHECK_INT(t.waves, ==, 2);
    work.rows = 384; /* three of four tiles of rows live */
    t = time_on("h100", &g.items[1], work);
    CHECK_INT(t.busy, ==, 102);
    CHECK_INT(t.waves, ==, 1);
}

/* Gate and up of 712 rows, 8-bit weights. Orin: 1536 tiles of 128 x 128, 96 of each processor, one
 * after the other: 16 steps, each as long as its multiplies, at twice the bf16 rate and 0.75 of it.
 * On Thor twice that rate is more than 2048 multiply-adds a clock, on a 4090 four times it more
 * than 1024: at 0.75 of these the 128 x 128 x 128 of a step take 1365 and 2731 clocks. */
TEST(products_of_digits_take_their_multiplies)
{
    struct tec_gemm_args a = {.max_rows = 712, .n = 32768, .k = 2048, .digits = 1};
    struct tec_cuda_facts thor = orin;
    thor.capability = 110;
    thor.processors = 20;
    struct grids g = product_of(TEC_KERNEL_gemm_int8, &orin, &a);
    struct tec_grid_work work = {.rows = 712, .cost = {.weights = (int64_t)32768 * 2048}};
    REQUIRE(g.n == 2 && is(&g.items[1], "int8_many_mma_one_128", 6, 256, 1));
    double flop = 2.0 * 128 * 128 * 128, rate = 2 * 42.5e6 / 16 * 0.75, slower = 1980.0 / 1300;
    struct tec_grid_time t = time_on("orin", &g.items[1], work);
    CHECK_INT(t.waves, ==, 96);
    CHECK(near(t.us, 2.1 + 96 * (1.5 * slower + 16 * flop / rate)));
    CHECK_STR(t.bound, "multiply");
    work.cost = (struct tec_cost){0};
    a.n = 128 * 3; /* 18 tiles: a wave */
    g = product_of(TEC_KERNEL_gemm_int8, &thor, &a);
    REQUIRE(g.n == 2 && is(&g.items[1], "int8_many_mma_one_128", 6, 3, 1));
    t = time_on("thor", &g.items[1], work);
    CHECK_INT(t.waves, ==, 1);
    CHECK(near(t.us, 1.1 + 1.5 * 1980 / 1575 + 16 * 2097152 / (2048 * 0.75) / 1575));
    /* x is read as four bytes and written as one, at 0.6 of the L2's rate */
    t = time_on("thor", &g.items[0], work);
    CHECK(near(t.us, 1.1 + 712 * 2048 * 5 / (2000e3 * 0.6)));
    a.n = 2048; /* 96 tiles: a wave */
    g = product_of(TEC_KERNEL_gemm_int8, &ada, &a);
    REQUIRE(g.n == 2 && is(&g.items[1], "int8_many_mma_one_128", 6, 16, 1));
    t = time_on("4090", &g.items[1], work);
    CHECK_INT(t.waves, ==, 1);
    CHECK(near(t.us, 2.1 + 1.5 * 1980 / 2520 + 16 * 2097152 / (1024 * 0.75) / 2520));
}

/* Of 64 columns and 3840 rows 60 small tiles are three of each of Thor's multiprocessors. Weights,
 * 8192 bytes of a step, come once and are read by two warps for each of two digits, the 16384 bytes
 * of digits by two: at 128 a clock 704 clocks of a tile, more than its 1048576 multiply-adds take
 * at 0.75 of 2048 a clock. */
TEST(small_tiles_read_weights_for_each_digit)
{
    struct tec_gemm_args a = {.max_rows = 3840, .n = 64, .k = 2048};
    struct tec_cuda_facts thor = orin;
    struct tec_grid_work work = {.rows = 3840};
    thor.capability = 110;
    thor.processors = 20;
    struct grids g = product_of(TEC_KERNEL_gemm_int8, &thor, &a);
    REQUIRE(g.n == 2 && is(&g.items[1], "int8_many_mma_two_narrow", 60, 1, 1));
    struct tec_grid_time t = time_on("thor", &g.items[1], work);
    CHECK_INT(t.waves, ==, 1);
    CHECK_INT(t.resident, ==, 3);
    CHECK(near(t.us, 1.1 + 1.5 * 1980 / 1575 + 16 * 3 * (8192 * 5 + 16384 * 3) / 128.0 / 1575));
}

/* 4-bit weights, two digits, 128 x 128: on an H100 a group of 128 k takes its instructions, 2 x
 * (130
 * + 4 x 78) + 350 of each of eight warps. One of 256 takes what comes from the L2: for each digit
 * 16384 bytes of weights and eight panels' line of 64 bytes for each 128 k, besides the digits of
 * 128 rows; where 8 of them live its instructions, 2 x (2 x 130 + 8 x 78) + 350. */
TEST(four_bit_weights_come_for_each_digit)
{
    struct tec_gemm_args a = {.max_rows = 512, .n = 4096, .k = 1024, .digits = 2, .group = 128};
    struct tec_grid_work work = {.rows = 512};
    struct grids g = product_of(TEC_KERNEL_gemm_int4, &h100, &a);
    REQUIRE(g.n == 2 && is(&g.items[1], "int4_many_mma_128", 4, 32, 1));
    struct tec_grid_time t = time_on("h100", &g.items[1], work);
    CHECK(near(t.us, 1.1 + 1.5 + 8 * 1234 * 2 / 1980.0));
    a.group = 256;
    g = product_of(TEC_KERNEL_gemm_int4, &h100, &a);
    REQUIRE(g.n == 2 && is(&g.items[1], "int4_many_mma_128", 4, 32, 1));
    t = time_on("h100", &g.items[1], work);
    double bytes = 2 * (16384 + 8 * 64 * 2) + 128 * 256 * 2;
    CHECK(near(t.us, 1.1 + 1.5 + 4 * bytes * 132 / 5500e3));
    work.rows = 8;
    t = time_on("h100", &g.items[1], work);
    CHECK(near(t.us, 1.1 + 1.5 + 4 * 2118 * 2 / 1980.0));
}

/* Gate and up of 712 rows by warp groups: 1536 tiles of 128 x 128 on 132 processors are 12 of one,
 * which a block takes one after the other: 7.6 us around all, 16 steps of 810 clocks of 1980 in
 * each, 128 rows to store between two. Of 65 rows and 512 k 16 tiles of 128 rows would store longer
 * than 32 of 64 are multiplied longer; two could share a processor, but one takes as long alone. Of
 * 192 rows and 9088 columns 213 tiles of 64 rows share them, 142 would be two on some. */
TEST(products_of_bytes_by_warp_groups_follow_one_another)
{
    struct tec_gemm_args a = {.max_rows = 712, .n = 32768, .k = 2048, .digits = 1};
    struct grids g = product_of(TEC_KERNEL_gemm_int8, &h100, &a);
    struct tec_grid_work work = {.rows = 712};
    REQUIRE(g.n == 2 && is(&g.items[1], "int8_many_groups_one_128", 132, 1, 1));
    struct tec_grid_time t = time_on("h100", &g.items[1], work);
    CHECK_INT(t.waves, ==, 12);
    CHECK_INT(t.busy, ==, 1536);
    CHECK(near(t.us, 1.1 + 7.6 + (12 * 16 * 810 + 11 * 128 * 45) / 1980.0));
    CHECK_STR(t.bound, "multiply");
    a = (struct tec_gemm_args){.max_rows = 65, .n = 2048, .k = 1024};
    g = product_of(TEC_KERNEL_gemm_int8, &h100, &a);
    CHECK(g.n == 2 && is(&g.items[1], "int8_many_groups_two_128", 16, 1, 1));
    a.k = 512;
    work.rows = 65;
    g = product_of(TEC_KERNEL_gemm_int8, &h100, &a);
    REQUIRE(g.n == 2 && is(&g.items[1], "int8_many_groups_two_64", 32, 1, 1));
    t = time_on("h100", &g.items[1], work);
    CHECK(near(t.us, 1.1 + 7.6 + 4 * 1590 / 1980.0));
    a = (struct tec_gemm_args){.max_rows = 192, .n = 9088, .k = 2048};
    work.rows = 192;
    g = product_of(TEC_KERNEL_gemm_int8, &h100, &a);
    REQUIRE(g.n == 2 && is(&g.items[1], "int8_many_groups_two_64", 213, 1, 1));
    t = time_on("h100", &g.items[1], work);
    CHECK_INT(t.waves, ==, 1);
    CHECK(near(t.us, 1.1 + 7.6 + (16 * 1590 + 64 * 45) / 1980.0));
}

/* q, k and v of 712 rows: 6 x 20 tiles of 128 x 128 are one of each processor, 6 x 40 two. Behind
 * each of those that follow one another the rotation takes as long as behind bf16 weights. */
TEST(a_rotation_behind_products_of_bytes_takes_its_time)
{
    static const float table[1];
    struct tec_grid_work work = {.rows = 712};
    for (int tiles = 1; tiles <= 2; tiles++) {
        int heads = 10 * tiles - 2, n = 2560 * tiles;
        struct tec_gemm_args a = {.max_rows = 712, .n = n, .k = 2048, .digits = 1};
        struct tec_rope_args rope = {.max_rows = 712,
                                     .ld = n,
                                     .heads = heads,
                                     .kv_heads = 1,
                                     .head_dim = 256,
                                     .k_at = heads * 256,
                                     .v_at = heads * 256 + 256,
                                     .cos_sin = table};
        const struct tec_cuda_chain chain = {
            .gemm = &a, .int8 = true, .then = TEC_CUDA_THEN_rope_bf16, .args = &rope};
        struct grids g = {0}, plain = product_of(TEC_KERNEL_gemm_int8, &h100, &a);
        rope.q = list_y; /* far from x, which is nowhere */
        rope.ldq = n;
        REQUIRE(tec_grids_of_chain(&chain, &h100, keep, &g) && g.n == 2 && plain.n == 2);
        CHECK_STR(g.items[1].what, "int8_many_groups_one_128");
        struct tec_grid_time t = time_on("h100", &g.items[1], work);
        CHECK_INT(t.waves, ==, tiles);
        CHECK(near(t.us - time_on("h100", &plain.items[1], work).us, tiles * 14.7));
    }
}

/* Blocks that make the digits of 64 rows themselves: 1130 + 20 x 8 instructions of each of eight
 * warps a step, two blocks beside one another; 12 x 16 of them on Orin are six waves. */
TEST(digits_made_by_every_block_take_its_instructions)
{
    struct tec_gemm_args a = {.max_rows = 712, .n = 2048, .k = 2048, .digits = 1};
    struct tec_cuda_facts none = orin;
    none.terms_size = 0;
    struct grids g = product_of(TEC_KERNEL_gemm_int8, &none, &a);
    REQUIRE(g.n == 1 && is(&g.items[0], "int8_few_mma_one_64", 12, 16, 1));
    struct tec_grid_time t = time_on("orin", &g.items[0], (struct tec_grid_work){.rows = 712});
    CHECK(near(t.us, 2.1 + 6 * (1.5 * 1980 / 1300 + 16 * 2 * 1290.0 * 8 / 4 / 1300)));
}

/* Float32 memory as terms, 512 rows of 16 heads of 72 columns: 128 tiles of 64 rows. Each walks
 * over four blocks of keys, each 2.3 us x 2 for many rows x 72 / 256; besides 4 bytes of 2 x 64 x
 * 72 numbers at 60 % of a 132nd of the L2's 5500 GB/s. */
TEST(attention_by_terms_takes_its_keys_and_their_terms)
{
    struct tec_attention_args a = {
        .max_rows = 512, .heads = 16, .kv_heads = 16, .head_dim = 72, .terms = 2};
    struct grids g = {0};
    struct tec_grid_work work = {.rows = 512, .keys = 256, .together = 256};
    tec_grids_of(TEC_KERNEL_attention_f32, &a, &h100, keep, &g);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "64 rows, terms", 8, 16, 1));
    struct tec_grid_time t = time_on("h100", &g.items[0], work);
    double each = 2.3 * 2 * 72 / 256 + 4 * 9216.0 * 132 / (5500e3 * 0.6);
    CHECK(near(t.us, 1.1 + 1.5 + 4 * each));
    CHECK_INT(t.waves, ==, 1);
    CHECK_STR(t.bound, "wait");
    a.max_rows = 4; /* small tiles, whose keys are shared */
    tec_grids_of(TEC_KERNEL_attention_f32, &a, &h100, keep, &g);
    CHECK(is(&g.items[1], "16 rows, terms", 4, 16, 9));
    a.max_rows = 512;
    /* A large tile whose answer waits in memory: two chunks of 64 x 128 numbers. */
    a.head_dim = 128;
    tec_grids_of(TEC_KERNEL_attention_f32, &a, &h100, keep, &g);
    each = 2.3 * 2 / 2 + 4 * 16384.0 * 132 / (5500e3 * 0.6);
    CHECK(near(time_on("h100", &g.items[2], work).us, 1.1 + 1.5 + 2 * 1.4 * 8 + 4 * each));
    a.head_dim = 136; /* too wide for terms */
    tec_grids_of(TEC_KERNEL_attention_f32, &a, &h100, keep, &g);
    CHECK_INT(g.items[3].attention.terms, ==, 0);
}

/* 51 rows of eight heads of 256 columns, 583 keys: five chunks of two blocks of keys for each of 26
 * tiles, 130 thread blocks. A warp has 798 instructions in a block of keys, eight warps four
 * schedulers. The last one of a tile folds 16 rows, eight at a time: 317 + 5 x 12 instructions and
 * twice 365 + 5 x 20, four waits of 0.7 us, 4096 float32 of each chunk. */
TEST(attention_of_few_rows_meets)
{
    struct tec_attention_args a = {.max_rows = 51, .heads = 8, .kv_heads = 1, .head_dim = 256};
    struct grids g = {0};
    struct tec_grid_work work = {.rows = 51, .keys = 583, .together = 51};
    tec_grids_of(TEC_KERNEL_attention_bf16, &a, &h100, keep, &g);
    REQUIRE(g.n == 1);
    struct tec_grid_time t = time_on("h100", &g.items[0], work);
    double l2 = 132 / 5500e3, keys = 1596 / 1980.0 + 0.9;
    double meet = 2 * 1307 / 1980.0 + 4 * 0.7 + 4 * 4096 * 5 * l2;
    CHECK_INT(t.busy, ==, 130);
    CHECK(near(t.us, 1.1 + 1.5 + 2 * keys + meet));
    /* As an H100 measured it: 2.3 us for a block of keys, 3.2 for 1024 numbers and four chunks. */
    CHECK(near(measured_time(&g.items[0], work).us, 1.1 + 1.5 + 2 * 2.3 + 3.2 * 4 * 2));
    /* One row: eight packed rows of it, so one pass. */
    work = (struct tec_grid_work){.rows = 1, .keys = 583, .together = 1};
    meet = 2 * 842 / 1980.0 + 3 * 0.7 + 4 * 2048 * 5 * l2;
    CHECK(near(time_on("h100", &g.items[0], work).us, 1.1 + 1.5 + 2 * keys + meet));
}

/* A prompt of 532 rows: 67 tiles of 64 packed rows, each with nine blocks of keys, of 1770
 * instructions; their answers are near. */
TEST(attention_of_a_prompt_takes_large_tiles)
{
    struct tec_attention_args a = {.max_rows = 816, .heads = 8, .kv_heads = 1, .head_dim = 256};
    struct grids g = {0};
    struct tec_grid_work work = {.rows = 532, .keys = 532, .together = 532};
    tec_grids_of(TEC_KERNEL_attention_bf16, &a, &h100, keep, &g);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "64 rows", 102, 1, 1));
    struct tec_grid_time t = time_on("h100", &g.items[0], work);
    CHECK_INT(t.busy, ==, 67);
    CHECK_INT(t.waves, ==, 1);
    CHECK(near(t.us, 1.1 + 1.5 + 9 * (3540 / 1980.0 + 0.9)));
    /* Small tiles, two on a multiprocessor, are held up by the L2: 2 x 64 KiB of its bytes. */
    tec_grids_of(TEC_KERNEL_attention_bf16, &a, &orin, keep, &g);
    CHECK(is(&g.items[1], "16 rows", 408, 1, 1));
    a.max_rows = 520;
    work.rows = 520;
    tec_grids_of(TEC_KERNEL_attention_bf16, &a, &h100, keep, &g);
    CHECK(is(&g.items[2], "16 rows", 260, 1, 1));
    t = time_on("h100", &g.items[2], work);
    CHECK_INT(t.resident, ==, 2);
    CHECK(near(t.us, 1.1 + 1.5 + 9 * 4.0 * 64 * 256 * 2 * 132 / 5500e3));
}

/* Sums of weights: two rows of eight heads in a block, so 150 blocks of 300 rows, two on some of
 * the multiprocessors. 1000 keys are 16 blocks of 64, walked over twice: 32 x 2 x 16 x 64 x 256 x 2
 * FLOP at 0.1875 of 67 TFLOP/s / 132, behind 1.5 us. */
TEST(sums_of_attention_take_their_multiply_adds)
{
    struct tec_mass_args a = {.max_rows = 512, .heads = 8, .kv_heads = 1, .head_dim = 256};
    struct grids g = {0};
    struct tec_grid_work work = {.rows = 300, .keys = 1000};
    tec_grids_of(TEC_KERNEL_attention_mass_f32, &a, &h100, keep, &g);
    REQUIRE(g.n == 1);
    struct tec_grid_time t = time_on("h100", &g.items[0], work);
    CHECK(near(t.us, 1.1 + 1.5 + 32 * 1048576.0 / (67e6 / 132 * 0.1875)));
    CHECK_INT(t.busy, ==, 150);
    CHECK_STR(t.bound, "multiply");
    work.rows = 0;
    CHECK(near(time_on("h100", &g.items[0], work).us, 1.1));
}

/* Over bf16 memory: 64 packed rows are eight rows of eight heads, 375 tiles of 3000 rows; two find
 * room on a multiprocessor, so there is a wave of 264 and one of 111, which are alone. Each walks
 * over 16 blocks of keys for both of its key heads, of 64 columns. */
TEST(sums_of_attention_on_tensor_cores_take_as_long_as_attention)
{
    struct tec_mass_args a = {
        .max_rows = 3000, .heads = 16, .kv_heads = 2, .head_dim = 64, .max_ranges = 80};
    struct grids g = {0};
    struct tec_grid_work work = {.rows = 3000, .keys = 1000};
    tec_grids_of(TEC_KERNEL_attention_mass_bf16, &a, &h100, keep, &g);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "64 rows", 375, 1, 1));
    struct tec_grid_time t = time_on("h100", &g.items[0], work);
    CHECK_INT(t.resident, ==, 2);
    CHECK_INT(t.waves, ==, 2);
    CHECK(near(t.us, 1.1 + 2 * (1.5 + 16 * 3.45 / 2) + 2 * (1.5 + 16 * 2.3 / 2)));
    CHECK_STR(t.bound, "wait");
    work.rows = 0;
    CHECK(near(time_on("h100", &g.items[0], work).us, 1.1));
}

/* Sums of 4000 ranges: 64 MiB hold those of 262 tiles of 16, two rows each, so 1500 tiles take
 * six turns of a wave, and what waits in memory is written and read. On an RTX 4090 heads of 256
 * columns have no room for 64 rows, those of 264 have no tile. */
TEST(sums_of_attention_take_their_places_in_turns)
{
    struct tec_mass_args a = {
        .max_rows = 3000, .heads = 16, .kv_heads = 2, .head_dim = 64, .max_ranges = 4000};
    struct tec_cuda_facts less = ada;
    struct grids g = {0};
    struct tec_grid_work work = {.rows = 3000, .keys = 1000};
    tec_grids_of(TEC_KERNEL_attention_mass_bf16, &a, &h100, keep, &g);
    REQUIRE(g.n == 1);
    CHECK(is(&g.items[0], "16 rows", 262, 1, 1));
    struct tec_grid_time t = time_on("h100", &g.items[0], work);
    CHECK_STR(t.bound, "memory");
    CHECK(near(t.us, 1.1 + 8.0 * 3000 * 16 * 4000 / (3000e3 * 0.93)));
    work.keys = 4000;
    t = time_on("h100", &g.items[0], work);
    CHECK(near(t.us, 1.1 + 6 * 2 * (1.5 + 63 * 3.45 / 4)));
    a.max_ranges = 80;
    a.head_dim = 256;
    tec_grids_of(TEC_KERNEL_attention_mass_bf16, &a, &ada, keep, &g);
    CHECK(is(&g.items[1], "16 rows", 1500, 1, 1));
    a.max_ranges = 4000;
    less.terms_size = 0; /* 32 MiB */
    tec_grids_of(TEC_KERNEL_attention_mass_bf16, &a, &less, keep, &g);
    CHECK(is(&g.items[2], "16 rows", 131, 1, 1));
    a.head_dim = 264;
    tec_grids_of(TEC_KERNEL_attention_mass_bf16, &a, &ada, keep, &g);
    CHECK_INT(g.items[3].mass.m, ==, 0);
}

/* 51 rows are 7 groups of 8. 16 blocks have one of them at most: they meet in 0.6 us, two batches
 * of eight splits wait 0.19 us each, and 16 splits are read in 0.063. Of six blocks one has two
 * groups, with one batch each. The last block alone had 0.19 + 7 x 0.063 us for each split. */
TEST(a_cluster_shares_what_its_last_block_had)
{
    struct tec_grid_work work = {.rows = 51};
    struct tec_cuda_facts none = h100;
    none.clusters = 0;
    struct tec_gemm_args out = {.max_rows = 51, .n = 1024, .k = 2048};
    struct grids g = product(&h100, &out), alone = product(&none, &out);
    double saved = time_on("h100", alone.items, work).us - time_on("h100", g.items, work).us;
    CHECK(near(saved, 16 * (0.19 + 7 * 0.063) - (0.6 + 2 * 0.19 + 16 * 0.063)));
    struct tec_gemm_args qkv = {.max_rows = 51, .n = 2560, .k = 1024};
    g = product(&h100, &qkv);
    alone = product(&none, &qkv);
    saved = time_on("h100", alone.items, work).us - time_on("h100", g.items, work).us;
    CHECK(near(saved, 6 * (0.19 + 7 * 0.063) - (0.6 + 2 * (0.19 + 6 * 0.063))));
}

/* q, k and v of 51 rows in one kernel with their rotation, where six splits are a cluster: of two
 * groups each waits for positions and angles, and has two batches of four splits; beside it none.
 */
TEST(a_cluster_rotates_its_rows)
{
    static const float table[1];
    struct tec_grid_work work = {.rows = 51};
    struct tec_cuda_facts none = h100;
    struct tec_gemm_args a = {.max_rows = 51, .n = 2560, .k = 1024, .ldx = 1024, .ldy = 2560};
    struct tec_rope_args rope = {
        .max_rows = 51, .ld = 2560, .heads = 8, .kv_heads = 1, .head_dim = 256, .cos_sin = table};
    const struct tec_cuda_chain chain = {
        .gemm = &a, .then = TEC_CUDA_THEN_rope_bf16, .args = &rope};
    struct grids g = {0}, plain = product(&h100, &a);
    rope.k_at = 2048;
    rope.v_at = 2304;
    rope.q = list_y;
    rope.ldq = Y_COLS;
    a.x = list_x;
    REQUIRE(tec_grids_of_chain(&chain, &h100, keep, &g) && g.n == 1);
    CHECK(is(&g.items[0], "groups_64", 1, 20, 6));
    CHECK_INT(g.items[0].cluster, ==, 6);
    double more = time_on("h100", g.items, work).us - time_on("h100", plain.items, work).us;
    CHECK(near(more, 2 * (0.19 + 2 * 0.7)));
    none.clusters = 0;
    CHECK(!tec_grids_of_chain(&chain, &none, keep, &g));
    a.k = 256; /* two splits are no cluster */
    CHECK(!tec_grids_of_chain(&chain, &h100, keep, &g));
    a.max_rows = rope.max_rows = 16; /* tiles of few rows have the registers */
    CHECK(tec_grids_of_chain(&chain, &none, keep, &g));
}

TEST(what_is_planned_takes_no_longer)
{
    const struct tec_changes all = {.loop_overlap = true}, none = {0};
    const struct tec_peak *peak = peak_of("h100");
    struct tec_gemm_args a = {.max_rows = 51, .n = 1024, .k = 4096};
    struct grids g = product(&h100, &a);
    struct tec_grid_work work = {.rows = 51, .in_loop = true};
    struct tec_grid_time now = tec_grid_time_of(peak, tec_chip_of(peak), &g.items[0], &work, &none);
    struct tec_grid_time then = tec_grid_time_of(peak, tec_chip_of(peak), &g.items[0], &work, &all);
    CHECK(near(now.us - then.us, 1.0)); /* kernels overlap in the loop */
}

/* --- an H100 --------------------------------------------------------------------------------- */

/* The layers that constants were fitted to; all others are held out. */
static bool fitted(const struct layer *l)
{
    static const char *const names[] = {"gemm_bf16 action q|k|v",
                                        "gemm_bf16 action gate|up",
                                        "gemm_bf16 action down",
                                        "gemm_bf16 decode 6 q|k|v",
                                        "gemm_bf16 decode 6 down",
                                        "gemm_bf16 decode 6 gate|up",
                                        "gemm_bf16 text q|k|v",
                                        "gemm_bf16 text gate|up",
                                        "gemm_bf16 text down",
                                        "attention_bf16 text",
                                        "attention_bf16 action",
                                        "attention_bf16 decode 1",
                                        "attention_f32 vision",
                                        "euler actions",
                                        "layernorm vision",
                                        "gelu vision",
                                        "gelu_mul text"};
    char name[80];
    snprintf(name, sizeof name, "%s %s", l->name, l->what);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static double measured(const json_t *list, const struct layer *l)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *kernel = json_string_value(json_object_get(item, "kernel"));
        const char *what = json_string_value(json_object_get(item, "layer"));
        if (kernel && what && strcmp(kernel, l->name) == 0 && strcmp(what, l->what) == 0)
            return json_number_value(json_object_get(item, "us"));
    }
    return 0.0;
}

/* The arguments and the work of a layer as tests/kernels/bench_cuda.c makes them. */
static void make_layer(union layer_args *a, struct tec_grid_work *w, const struct layer *l)
{
    static const float table[1];
    int64_t rows = l->rows, n = l->n, k = l->k;
    *w = (struct tec_grid_work){.rows = rows, .together = 1};
    w->cost.read = w->cost.written = 4 * rows * n;
    switch (l->kernel) {
    case TEC_KERNEL_gemm_f32:
    case TEC_KERNEL_gemm_bf16:
        a->gemm = (struct tec_gemm_args){
            .max_rows = l->rows, .n = l->n, .k = l->k, .ldx = l->k, .ldy = l->n};
        w->cost.weights = n * k * (l->kernel == TEC_KERNEL_gemm_bf16 ? 2 : 4);
        w->cost.read = 4 * rows * k;
        break;
    case TEC_KERNEL_attention_f32:
    case TEC_KERNEL_attention_bf16:
        a->attention = (struct tec_attention_args){
            .max_rows = l->rows, .heads = l->heads, .kv_heads = l->kv, .head_dim = l->k};
        w->keys = (double)n;
        w->together = rows > n ? (double)n : rows > 8 ? (double)rows : 1.0;
        break;
    case TEC_KERNEL_rope_bf16:
        a->rope = (struct tec_rope_args){.max_rows = l->rows,
                                         .heads = l->heads,
                                         .kv_heads = l->kv,
                                         .head_dim = l->k,
                                         .cos_sin = table};
        w->cost.read = 4 * rows * k * (l->heads + 2 * l->kv);
        w->cost.written = 4 * rows * k * (l->heads + l->kv);
        break;
    case TEC_KERNEL_gelu_mul:
        a->gated = (struct tec_gated_args){.max_rows = l->rows, .cols = l->n};
        w->cost.read *= 2;
        break;
    case TEC_KERNEL_euler:
        a->euler = (struct tec_euler_args){.max_rows = l->rows, .cols = l->n};
        w->cost.read *= 2;
        break;
    case TEC_KERNEL_gelu:
        a->map = (struct tec_map_args){.max_rows = l->rows, .cols = l->n};
        break;
    case TEC_KERNEL_embed_bf16:
        a->embed = (struct tec_embed_args){.max_rows = l->rows, .k = l->k};
        w->cost.read = 2 * rows * k;
        w->cost.written = 4 * rows * k;
        break;
    default:
        a->norm = (struct tec_norm_args){.max_rows = l->rows, .cols = l->n};
    }
}

/* Attention over bf16 memory as it was when it was measured: a prompt in small tiles, too; answers
 * of all kernels waited in `out`. */
static void small_tiles(struct tec_grid *g)
{
    const struct tec_attention_args *a = g->args;
    struct attention_choice *c = &g->attention;
    *c = (struct attention_choice){16, 1, 0, bf16_shared_size(16, 1, a->head_dim),
                                   attention_tiles(a, 16)};
    attention_split(a, &h100, &c->plan);
    attention_blocks(a, &c->plan, g->blocks);
    g->shared = c->shared;
    g->registers = 128;
}

static double modelled(const struct layer *l)
{
    union layer_args args;
    struct tec_grid_work work;
    struct grids g = {0};
    double us = 0.0;
    memset(&args, 0, sizeof args);
    make_layer(&args, &work, l);
    struct tec_cuda_facts then = h100; /* the last block of a tile added all splits when */
    then.clusters = 0;                 /* it was measured */
    tec_grids_of(l->kernel, &args, &then, keep, &g);
    for (int i = 0; i < g.n && i < 8; i++) {
        if (l->kernel == TEC_KERNEL_attention_bf16)
            small_tiles(&g.items[i]);
        g.items[i].attention.plan.near = false;
        us += measured_time(&g.items[i], work).us;
    }
    return us;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle of the distances, as factors above 1, and the largest. */
static void distances(bool of_fitted, double *middle, double *largest)
{
    const char *path = TECTUM_SOURCE "/doc/measurements/h100_2026-11-26_benches.json";
    double all[LAYERS];
    int n = 0;
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    for (int i = 0; json && i < LAYERS; i++) {
        /* Float32 products were float64 when they were measured. */
        if (fitted(&layers[i]) != of_fitted || layers[i].kernel == TEC_KERNEL_gemm_f32)
            continue;
        double is = measured(json_object_get(json, "layers"), &layers[i]);
        double said = modelled(&layers[i]);
        printf("# %-14s %-16s measured %8.2f us, modelled %8.2f, %+5.1f %%%s\n", layers[i].name,
               layers[i].what, is, said, 100 * (said / is - 1), of_fitted ? ", fitted" : "");
        all[n++] = said > is ? said / is : is / said;
    }
    json_decref(json);
    qsort(all, (size_t)n, sizeof all[0], by_size);
    *middle = n ? all[n / 2] : 0.0;
    *largest = n ? all[n - 1] : 0.0;
}

/* What doc/roofline.md says of the model's errors. */
TEST(the_model_is_as_far_from_an_h100_as_its_page_says)
{
    double middle, largest;
    distances(true, &middle, &largest);
    CHECK(middle > 1.0 && middle < 1.03);
    CHECK(largest < 1.12);
    distances(false, &middle, &largest);
    CHECK(middle > 1.0 && middle < 1.10);
    CHECK(largest < 2.0);
}

TAP_MAIN
