/* terms.c - what a kernel leaves as bf16 terms for the product behind it, in captures: in loops, in
 * a branch and beside it, and where it may not, because somebody else reads it or something stands
 * between. The kernels: tests/kernels/check_handed.c. */
#include "kernels/grids.h"
#include "kernels/matrix.h"
#include "tests/cuda/bench.h"

#include <stdlib.h>

enum { N_ROWS = 150, WIDTH = 64, SIZE = N_ROWS * WIDTH, WAYS = 2, TURNS = 3 };

static struct bench b;
static struct tec_error err;

/* Of each way; all on the device. */
static struct way {
    float *x, *mid, *y;
} ways[WAYS];
static void *w;
static int *counts; /* rows, turns, stop */

static void fill(float *to, float salt)
{
    static float values[SIZE];
    for (int i = 0; i < SIZE; i++)
        values[i] = (float)(i * 37 % 101 - 50) / (64.0F + salt);
    bench_upload(&b, to, values, sizeof values);
}

static void open_bench(enum cuda_emulator_when when, unsigned seed)
{
    static float values[WIDTH * WIDTH];
    const int numbers[] = {N_ROWS - 7, TURNS, 0};
    size_t packed = tec_matrix_size(TEC_MATRIX_TILES, true, WIDTH, WIDTH);
    bench_clean();
    cuda_emulator_timing(when, seed);
    bench_branches = true;
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    bench_branches = false;
    for (int i = 0; i < WAYS; i++)
        ways[i] =
            (struct way){bench_get(&b, SIZE * sizeof(float)), bench_get(&b, SIZE * sizeof(float)),
                         bench_get(&b, SIZE * sizeof(float))};
    for (int i = 0; i < WIDTH * WIDTH; i++)
        values[i] = (float)(i * 29 % 83 - 41) / 512.0F;
    void *tiles = calloc(1, packed);
    REQUIRE(tiles);
    tec_matrix_pack(tiles, TEC_MATRIX_TILES, true, WIDTH, WIDTH, 0, WIDTH, values);
    w = bench_get(&b, packed);
    counts = bench_get(&b, sizeof numbers);
    bench_upload(&b, w, tiles, packed);
    bench_upload(&b, counts, numbers, sizeof numbers);
    free(tiles);
}

static void close_bench(void)
{
    for (int i = 0; i < WAYS; i++) {
        tec_device_put(b.device, ways[i].x);
        tec_device_put(b.device, ways[i].mid);
        tec_device_put(b.device, ways[i].y);
    }
    tec_device_put(b.device, w);
    tec_device_put(b.device, counts);
    bench_close(&b);
    bench_check_empty();
    bench_clean();
}

static void add_norm(struct tec_capture *c, const float *x, float *y)
{
    const struct tec_norm_args norm = {.x = x,
                                       .y = y,
                                       .rows = counts,
                                       .max_rows = N_ROWS,
                                       .ldx = WIDTH,
                                       .ldy = WIDTH,
                                       .cols = WIDTH,
                                       .offset = 1.0F,
                                       .eps = 1e-6F};
    tec_capture_add(c, TEC_KERNEL_rmsnorm, &norm, true, "norm");
}

static void add_product(struct tec_capture *c, const float *x, int k, float *y, const int *rows)
{
    const struct tec_gemm_args gemm = {.x = x,
                                       .w = w,
                                       .y = y,
                                       .rows = rows,
                                       .max_rows = N_ROWS,
                                       .ldx = WIDTH,
                                       .ldy = WIDTH,
                                       .n = WIDTH,
                                       .k = k,
                                       .add = 1};
    tec_capture_add(c, TEC_KERNEL_gemm_bf16, &gemm, true, "product");
}

/* The kernels that kernels/grids.h says a capture starts; how many leave terms: *leaves. */
struct told {
    int starts, leaves;
};

static void count_start(void *user, const struct tec_grid *grid)
{
    struct told *told = user;
    told->starts++;
    told->leaves += grid->made_terms > 0;
}

static struct told told_of(const struct tec_capture *c)
{
    const struct tec_cuda_facts facts = {
        90, 132, true, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS, TEC_CUDA_SQUARES, TEC_CUDA_CLUSTERS};
    struct told told = {0, 0};
    for (int i = 0; i < tec_capture_commands(c);)
        i += tec_grids_at(c, i, &facts, count_start, &told);
    return told;
}

/* --- what a capture is ----------------------------------------------------------------------- */

struct outcome {
    float mid[WAYS][SIZE], y[WAYS][SIZE];
    int kernels;
    struct told told;
};

typedef void record_fn(struct tec_capture *c, bool passes);

static void one_way(struct tec_capture *c, const struct way *way, bool passes)
{
    add_norm(c, way->x, way->mid);
    if (passes)
        tec_capture_pass(c);
    add_product(c, way->mid, WIDTH, way->y, counts);
}

static void plain(struct tec_capture *c, bool passes)
{
    one_way(c, &ways[0], passes);
}

/* x += y w, of too many rows to leave sums of squares; then a norm of x. */
static void behind_a_sum(struct tec_capture *c, bool passes)
{
    add_product(c, ways[0].y, WIDTH, ways[0].x, counts);
    one_way(c, &ways[0], passes);
}

/* Each turn reads what the last one made. */
static void in_a_loop(struct tec_capture *c, bool passes)
{
    const struct way again = {ways[0].y, ways[0].mid, ways[0].y};
    one_way(c, &ways[0], passes);
    tec_capture_repeat(c, counts + 1, counts + 2);
    one_way(c, &again, passes);
    tec_capture_repeat_end(c);
    one_way(c, &ways[1], passes);
}

static void branched(struct tec_capture *c, bool passes)
{
    tec_capture_branch(c, true);
    one_way(c, &ways[1], passes);
    tec_capture_branch(c, false);
    one_way(c, &ways[0], passes);
    tec_capture_join(c);
    one_way(c, &ways[0], passes);
}

static void mark_between(struct tec_capture *c, bool passes)
{
    add_norm(c, ways[0].x, ways[0].mid);
    if (passes)
        tec_capture_pass(c);
    tec_capture_mark(c, 1);
    add_product(c, ways[0].mid, WIDTH, ways[0].y, counts);
}

static void loop_between(struct tec_capture *c, bool passes)
{
    add_norm(c, ways[0].x, ways[0].mid);
    if (passes)
        tec_capture_pass(c);
    tec_capture_repeat(c, counts + 1, counts + 2);
    add_product(c, ways[0].mid, WIDTH, ways[0].y, counts);
    tec_capture_repeat_end(c);
}

/* The branch's product reads what is made in front of it. */
static void into_a_branch(struct tec_capture *c, bool passes)
{
    add_norm(c, ways[0].x, ways[0].mid);
    if (passes)
        tec_capture_pass(c);
    tec_capture_branch(c, true);
    add_product(c, ways[0].mid, WIDTH, ways[0].y, counts);
    tec_capture_branch(c, false);
    tec_capture_join(c);
    one_way(c, &ways[1], false);
}

static void something_else(struct tec_capture *c, bool passes)
{
    add_norm(c, ways[0].x, ways[0].mid);
    if (passes)
        tec_capture_pass(c);
    add_product(c, ways[1].mid, WIDTH, ways[0].y, counts);
}

static void fewer_columns(struct tec_capture *c, bool passes)
{
    add_norm(c, ways[0].x, ways[0].mid);
    if (passes)
        tec_capture_pass(c);
    add_product(c, ways[0].mid, WIDTH - 16, ways[0].y, counts);
}

static void other_rows(struct tec_capture *c, bool passes)
{
    add_norm(c, ways[0].x, ways[0].mid);
    if (passes)
        tec_capture_pass(c);
    add_product(c, ways[0].mid, WIDTH, ways[0].y, counts + 1);
}

static void run(record_fn *record, bool passes, struct outcome *o)
{
    struct tec_replay replay = {0};
    struct tec_capture *c = NULL;
    for (int i = 0; i < WAYS; i++) {
        float salt = (float)i;
        fill(ways[i].x, salt);
        fill(ways[i].mid, 10 + salt);
        fill(ways[i].y, 20 + salt);
    }
    REQUIRE(tec_capture_begin(&c, b.device, TEC_STREAM_MAIN, &b.arena, &err) == TEC_OK);
    record(c, passes);
    REQUIRE(tec_capture_end(c, &err) == TEC_OK);
    tec_device_replay(b.device, c, &replay);
    REQUIRE(replay.status == TEC_OK);
    o->kernels = tec_capture_kernels(c);
    o->told = told_of(c);
    tec_capture_free(c);
    for (int i = 0; i < WAYS; i++) {
        tec_device_download(b.device, TEC_STREAM_MAIN, o->mid[i], ways[i].mid, sizeof o->mid[i]);
        tec_device_download(b.device, TEC_STREAM_MAIN, o->y[i], ways[i].y, sizeof o->y[i]);
    }
}

/* `fewer`: kernels that it takes less when norms pass, whose rows then nobody writes. */
static void compare(record_fn *record, int fewer)
{
    static struct outcome apart, o;
    run(record, false, &apart);
    run(record, true, &o);
    CHECK_INT(o.kernels, ==, apart.kernels - fewer);
    CHECK_INT(o.told.starts, ==, apart.told.starts - fewer);
    CHECK_INT(o.told.leaves, ==, fewer);
    CHECK_INT(apart.told.leaves, ==, 0);
    CHECK(memcmp(o.y, apart.y, sizeof o.y) == 0);
    CHECK_INT(memcmp(o.mid, apart.mid, sizeof o.mid) == 0, ==, fewer == 0);
}

static void once(record_fn *record, int fewer)
{
    open_bench(CUDA_EMULATOR_LOWEST, 0);
    compare(record, fewer);
    close_bench();
}

TEST(a_norm_leaves_terms_for_its_product)
{
    once(plain, 1);
}

TEST(a_norm_leaves_terms_behind_a_product_that_adds)
{
    once(behind_a_sum, 1);
}

TEST(terms_are_left_in_loops_as_well)
{
    once(in_a_loop, 3);
}

/* Both ways have terms at the same time, each in memory of its stream. */
TEST(a_branch_and_what_is_beside_it_have_terms_of_their_own)
{
    static const enum cuda_emulator_when whens[] = {CUDA_EMULATOR_LOWEST, CUDA_EMULATOR_HIGHEST,
                                                    CUDA_EMULATOR_SHUFFLED, CUDA_EMULATOR_EARLY};
    for (unsigned i = 0; i < sizeof whens / sizeof whens[0]; i++) {
        open_bench(whens[i], i);
        compare(branched, 3);
        close_bench();
    }
}

TEST(nothing_is_left_over_what_stands_between)
{
    once(mark_between, 0);
    once(loop_between, 0);
    once(into_a_branch, 0);
}

TEST(nothing_is_left_for_another_reader)
{
    once(something_else, 0);
    once(fewer_columns, 0);
    once(other_rows, 0);
}

/* Rows that cannot be copied in 16 bytes fail the capture, with terms behind them, too. */
TEST(rows_out_of_line_are_refused_before_a_product_that_leaves_terms)
{
    struct tec_capture *c = NULL;
    open_bench(CUDA_EMULATOR_LOWEST, 0);
    const struct tec_gemm_args first = {.x = ways[0].x + 1,
                                        .w = w,
                                        .y = ways[1].x,
                                        .rows = counts,
                                        .max_rows = N_ROWS - 1,
                                        .ldx = WIDTH,
                                        .ldy = WIDTH,
                                        .n = WIDTH,
                                        .k = WIDTH};
    const struct tec_map_args gelu = {.x = ways[1].x,
                                      .y = ways[0].mid,
                                      .rows = counts,
                                      .max_rows = N_ROWS - 1,
                                      .ldx = WIDTH,
                                      .ldy = WIDTH,
                                      .cols = WIDTH};
    struct tec_gemm_args last = first;
    last.x = ways[0].mid;
    last.y = ways[0].y;
    REQUIRE(tec_capture_begin(&c, b.device, TEC_STREAM_MAIN, &b.arena, &err) == TEC_OK);
    tec_capture_add(c, TEC_KERNEL_gemm_bf16, &first, true, "product");
    tec_capture_pass(c);
    tec_capture_add(c, TEC_KERNEL_gelu, &gelu, true, "gelu");
    tec_capture_pass(c);
    tec_capture_add(c, TEC_KERNEL_gemm_bf16, &last, true, "product");
    CHECK(told_of(c).leaves > 0);
    CHECK(tec_capture_end(c, &err) == TEC_DEVICE);
    tec_capture_free(c);
    close_bench();
}

TAP_MAIN
