/* chains.c - which commands the CUDA device starts together: a norm, a product, and what alone
 * reads it; and which not, because somebody else reads a result or the next one reads another. */
#include "kernels/grids.h"
#include "kernels/int8.h"
#include "kernels/matrix.h"
#include "tests/cuda/bench.h"

#include <stdlib.h>

enum { N_ROWS = 40, N = 64, K = 32, HALF = N / 2, SIZE = N_ROWS * N };

static struct bench b;
static struct tec_error err;

/* What one capture works on; all on the device. */
static struct {
    float *x, *mid, *y, *other, *out;
    void *w, *w8; /* of bf16; of bytes */
    int *rows, *index;
} at;

static void download(void *to, const void *from, size_t size)
{
    tec_device_download(b.device, TEC_STREAM_MAIN, to, from, size);
}

static void set_up(void)
{
    static float values[SIZE];
    const int rows = N_ROWS - 3;
    int index[N_ROWS];
    size_t packed = tec_matrix_size(TEC_MATRIX_TILES, true, N, K);
    bench_clean();
    /* One of 9.0 does fewer rows together: tests/kernels/check_chains.c. */
    cuda_emulator_device(89, 132, (size_t)8 << 30);
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    at.x = bench_get(&b, SIZE * sizeof(float));
    at.mid = bench_get(&b, SIZE * sizeof(float));
    at.y = bench_get(&b, SIZE * sizeof(float));
    at.other = bench_get(&b, SIZE * sizeof(float));
    at.out = bench_get(&b, SIZE * sizeof(float));
    at.w = bench_get(&b, packed);
    at.rows = bench_get(&b, sizeof rows);
    for (int i = 0; i < SIZE; i++)
        values[i] = (float)(i * 37 % 101 - 50) / 64.0F;
    bench_upload(&b, at.x, values, sizeof values);
    void *w = calloc(1, packed);
    REQUIRE(w);
    tec_matrix_pack(w, TEC_MATRIX_TILES, true, N, K, 0, N, values + 7);
    bench_upload(&b, at.w, w, packed);
    at.w8 = bench_get(&b, tec_int8_size(N, K));
    memset(w, 0, packed);
    REQUIRE(tec_int8_size(N, K) <= packed);
    tec_int8_pack(w, N, K, 0, N, values + 7);
    bench_upload(&b, at.w8, w, tec_int8_size(N, K));
    bench_upload(&b, at.rows, &rows, sizeof rows);
    for (int i = 0; i < N_ROWS; i++)
        index[i] = N_ROWS - 1 - i;
    at.index = bench_get(&b, sizeof index);
    bench_upload(&b, at.index, index, sizeof index);
    free(w);
}

static void tear_down(void)
{
    void *all[] = {at.x, at.mid, at.y, at.other, at.out, at.w, at.w8, at.rows, at.index};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tec_device_put(b.device, all[i]);
    bench_close(&b);
    bench_check_empty();
}

/* What is behind the product, reading `from`. The keys and values of rope_bf16 are rotated, by
 * numbers that need not be angles. */
static void add_next(struct tec_capture *c, enum tec_kernel_id next, const float *from,
                     bool rotated)
{
    const struct tec_map_args map = {from, at.out, at.rows, N_ROWS, N, N, N, 0};
    const struct tec_gated_args gated = {from, at.out, at.rows, N_ROWS, N, N, HALF, 0, HALF, 0};
    const struct tec_rope_args rope = {.qkv = from,
                                       .k = at.out,
                                       .v = at.out + SIZE / 2,
                                       .slot = at.index,
                                       .pos = at.index,
                                       .cos_sin =
                                           next == TEC_KERNEL_rope_bf16 || rotated ? at.x : NULL,
                                       .rows = at.rows,
                                       .max_rows = N_ROWS,
                                       .ld = N,
                                       .q_at = -1,
                                       .v_at = HALF,
                                       .kv_heads = 1,
                                       .head_dim = HALF};
    const void *args[TEC_KERNEL_COUNT] = {
        [TEC_KERNEL_gelu] = &map,       [TEC_KERNEL_gelu_erf] = &map,
        [TEC_KERNEL_gelu_mul] = &gated, [TEC_KERNEL_silu_mul] = &gated,
        [TEC_KERNEL_rope_f32] = &rope,  [TEC_KERNEL_rope_bf16] = &rope};
    tec_capture_add(c, next, args[next], true, "next");
}

/* NORMED: a norm in front of the product; NORM_PASSES: which alone reads it; UNREAD: the product
 * reads something else; NARROW: it reads columns that the norm leaves as they were. ROTATED:
 * rope_f32 too, which no product does with it. INT8: weights are bytes. */
enum about {
    PASSES = 1,
    ADDS = 2,
    OTHER = 4,
    BETWEEN = 8,
    NORMED = 16,
    NORM_PASSES = 32,
    ROTATED = 64,
    UNREAD = 128,
    NARROW = 256,
    INT8 = 512
};

/* What a capture came to. */
struct outcome {
    float mid[SIZE], y[SIZE], out[SIZE];
    int kernels; /* marks and the end apart */
};

static void add_norm(struct tec_capture *c, int about)
{
    const struct tec_norm_args norm = {.x = at.x,
                                       .y = at.mid,
                                       .rows = at.rows,
                                       .max_rows = N_ROWS,
                                       .ldx = N,
                                       .ldy = N,
                                       .cols = about & NARROW ? K - 8 : K,
                                       .offset = 1.0F,
                                       .eps = 1e-6F};
    tec_capture_add(c, TEC_KERNEL_rmsnorm, &norm, true, "norm");
    if (about & NORM_PASSES)
        tec_capture_pass(c);
}

static void add_product(struct tec_capture *c, int about)
{
    const struct tec_gemm_args gemm = {.x = (about & (NORMED | UNREAD)) == NORMED ? at.mid : at.x,
                                       .w = about & INT8 ? at.w8 : at.w,
                                       .y = at.y,
                                       .rows = at.rows,
                                       .max_rows = N_ROWS,
                                       .ldx = N,
                                       .ldy = N,
                                       .n = N,
                                       .k = K,
                                       .add = (about & ADDS) != 0};
    tec_capture_add(c, about & INT8 ? TEC_KERNEL_gemm_int8 : TEC_KERNEL_gemm_bf16, &gemm, true,
                    "product");
    if (about & PASSES)
        tec_capture_pass(c);
}

static void count_start(void *user, const struct tec_grid *grid)
{
    int *starts = user;
    (void)grid;
    ++*starts;
}

/* The kernels that kernels/grids.h says a capture starts. */
static int told_of(const struct tec_capture *c)
{
    const struct tec_cuda_facts facts = {89, 132, false, TEC_CUDA_PARTIALS, 0, TEC_CUDA_SQUARES, 0};
    int starts = 0;
    for (int i = 0; i < tec_capture_commands(c);)
        i += tec_grids_at(c, i, &facts, count_start, &starts);
    return starts;
}

/* [norm], product, [mark], next. */
static void run(enum tec_kernel_id next, int about, struct outcome *o)
{
    struct tec_replay replay = {0};
    struct tec_capture *c = NULL;
    static float marked[SIZE];
    for (int i = 0; i < SIZE; i++)
        marked[i] = (float)(i % 23 - 11) / 8.0F;
    bench_upload(&b, at.mid, marked, sizeof marked);
    bench_upload(&b, at.y, marked, sizeof marked);
    bench_upload(&b, at.other, marked, sizeof marked);
    bench_upload(&b, at.out, marked, sizeof marked);
    REQUIRE(tec_capture_begin(&c, b.device, TEC_STREAM_MAIN, &b.arena, &err) == TEC_OK);
    if (about & NORMED)
        add_norm(c, about);
    add_product(c, about);
    if (about & BETWEEN)
        tec_capture_mark(c, 1);
    add_next(c, next, about & OTHER ? at.other : at.y, about & ROTATED);
    REQUIRE(tec_capture_end(c, &err) == TEC_OK);
    tec_device_replay(b.device, c, &replay);
    REQUIRE(replay.status == TEC_OK);
    o->kernels = tec_capture_kernels(c) - 1 - ((about & BETWEEN) != 0);
    CHECK_INT(told_of(c), ==, o->kernels);
    tec_capture_free(c);
    download(o->mid, at.mid, sizeof o->mid);
    download(o->y, at.y, sizeof o->y);
    download(o->out, at.out, sizeof o->out);
}

/* What is of towers stands behind no product that begins with its norm. */
static bool parted(enum tec_kernel_id next, int about)
{
    bool tower =
        next == TEC_KERNEL_gelu || next == TEC_KERNEL_gelu_erf || next == TEC_KERNEL_rope_f32;
    return tower && (about & NORM_PASSES) && !(about & (UNREAD | NARROW));
}

/* The same commands with and without; `together`: kernels that it takes less, none of which writes
 * what lies between. */
static void compare(enum tec_kernel_id next, int about, int together)
{
    static struct outcome apart, o;
    run(next, about & ~(PASSES | NORM_PASSES), &apart);
    run(next, about, &o);
    CHECK_INT(apart.kernels, ==, about & NORMED ? 3 : 2);
    CHECK_INT(o.kernels, ==, apart.kernels - together);
    CHECK(memcmp(o.out, apart.out, sizeof o.out) == 0);
    bool wrote_y = memcmp(o.y, apart.y, sizeof o.y) == 0;
    bool wrote_mid = memcmp(o.mid, apart.mid, sizeof o.mid) == 0;
    CHECK_INT(wrote_y, ==, together == 0 || (about & PASSES) == 0 || parted(next, about));
    CHECK_INT(wrote_mid, ==,
              together == 0 || (about & NORM_PASSES) == 0 || (about & (UNREAD | NARROW)) != 0);
}

static const enum tec_kernel_id nexts[] = {TEC_KERNEL_gelu,      TEC_KERNEL_gelu_erf,
                                           TEC_KERNEL_gelu_mul,  TEC_KERNEL_silu_mul,
                                           TEC_KERNEL_rope_bf16, TEC_KERNEL_rope_f32};
enum { NEXTS = sizeof nexts / sizeof nexts[0] };

TEST(a_product_that_passes_is_done_with_its_reader)
{
    set_up();
    for (int i = 0; i < NEXTS; i++)
        compare(nexts[i], PASSES, 1);
    tear_down();
}

TEST(a_product_that_others_read_is_written)
{
    set_up();
    for (int i = 0; i < NEXTS; i++)
        compare(nexts[i], 0, 0);
    tear_down();
}

TEST(a_reader_of_something_else_stands_alone)
{
    set_up();
    for (int i = 0; i < NEXTS; i++)
        compare(nexts[i], PASSES | OTHER, 0);
    tear_down();
}

TEST(what_adds_or_has_a_mark_behind_it_stands_alone)
{
    set_up();
    for (int i = 0; i < NEXTS; i++) {
        compare(nexts[i], PASSES | ADDS, 0);
        compare(nexts[i], PASSES | BETWEEN, 0);
    }
    tear_down();
}

TEST(a_norm_that_passes_is_done_with_its_product)
{
    set_up();
    for (int i = 0; i < NEXTS; i++) {
        compare(nexts[i], NORMED | NORM_PASSES | PASSES, parted(nexts[i], NORM_PASSES) ? 1 : 2);
        compare(nexts[i], NORMED | NORM_PASSES, 1);
    }
    tear_down();
}

TEST(a_norm_that_is_not_the_whole_input_stands_alone)
{
    set_up();
    for (int i = 0; i < NEXTS; i++) {
        compare(nexts[i], NORMED | NORM_PASSES | PASSES | UNREAD, 1);
        compare(nexts[i], NORMED | NORM_PASSES | PASSES | NARROW, 1);
    }
    tear_down();
}

TEST(a_norm_that_others_read_is_written)
{
    set_up();
    for (int i = 0; i < NEXTS; i++) {
        compare(nexts[i], NORMED | PASSES, 1);
        compare(nexts[i], NORMED, 0);
    }
    tear_down();
}

TEST(what_does_not_go_with_a_product_is_done_behind_it)
{
    set_up();
    compare(TEC_KERNEL_rope_f32, PASSES | ROTATED, 0);
    compare(TEC_KERNEL_rope_f32, NORMED | NORM_PASSES | PASSES | ROTATED, 1);
    tear_down();
}

TEST(a_product_of_8_bit_weights_is_done_with_its_reader)
{
    set_up();
    for (int i = 0; i < NEXTS; i++) {
        compare(nexts[i], INT8 | PASSES, 1);
        compare(nexts[i], INT8, 0);
        compare(nexts[i], INT8 | PASSES | OTHER, 0);
        compare(nexts[i], INT8 | PASSES | ADDS, 0);
    }
    compare(TEC_KERNEL_rope_f32, INT8 | PASSES | ROTATED, 0);
    tear_down();
}

TEST(a_product_of_8_bit_weights_is_done_with_its_norm)
{
    set_up();
    for (int i = 0; i < NEXTS; i++) {
        int with = INT8 | NORMED | NORM_PASSES;
        compare(nexts[i], with | PASSES, parted(nexts[i], NORM_PASSES) ? 1 : 2);
        compare(nexts[i], with, 1);
        compare(nexts[i], with | PASSES | UNREAD, 1);
        compare(nexts[i], with | PASSES | NARROW, 1);
        compare(nexts[i], INT8 | NORMED | PASSES, 1);
    }
    tear_down();
}

TAP_MAIN
