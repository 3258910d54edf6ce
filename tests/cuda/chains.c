/* chains.c - which commands the CUDA device starts together: a product with what alone reads it;
 * and what it must not, because somebody else reads the result or the next one reads another. */
#include "kernels/matrix.h"
#include "tests/cuda/bench.h"

#include <stdlib.h>

enum { N_ROWS = 40, N = 64, K = 32, HALF = N / 2, SIZE = N_ROWS * N };

static struct bench b;
static struct tec_error err;

/* What one capture works on; all on the device. */
static struct {
    float *x, *y, *other, *out;
    void *w;
    int *rows, *index;
} at;

static void upload(void *to, const void *from, size_t size)
{
    tec_device_upload(b.device, TEC_STREAM_MAIN, to, from, size);
}

static void *take(size_t size)
{
    void *p = tec_device_get(b.device, size);
    REQUIRE(p);
    return p;
}

static void set_up(void)
{
    static float values[SIZE];
    const int rows = N_ROWS - 3;
    int index[N_ROWS];
    size_t packed = tec_matrix_size(TEC_MATRIX_TILES, true, N, K);
    bench_clean();
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    at.x = take(SIZE * sizeof(float));
    at.y = take(SIZE * sizeof(float));
    at.other = take(SIZE * sizeof(float));
    at.out = take(SIZE * sizeof(float));
    at.w = take(packed);
    at.rows = take(sizeof rows);
    for (int i = 0; i < SIZE; i++)
        values[i] = (float)(i * 37 % 101 - 50) / 64.0F;
    upload(at.x, values, sizeof values);
    void *w = calloc(1, packed);
    REQUIRE(w);
    tec_matrix_pack(w, TEC_MATRIX_TILES, true, N, K, 0, N, values + 7);
    upload(at.w, w, packed);
    upload(at.rows, &rows, sizeof rows);
    for (int i = 0; i < N_ROWS; i++)
        index[i] = N_ROWS - 1 - i;
    at.index = take(sizeof index);
    upload(at.index, index, sizeof index);
    free(w);
}

static void tear_down(void)
{
    void *all[] = {at.x, at.y, at.other, at.out, at.w, at.rows, at.index};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tec_device_put(b.device, all[i]);
    bench_close(&b);
    bench_check_empty();
}

/* What is behind the product, reading `from`. The keys and values of rope_bf16 are rotated, by
 * numbers that need not be angles. */
static void add_next(struct tec_capture *c, enum tec_kernel_id next, const float *from)
{
    const struct tec_map_args map = {from, at.out, at.rows, N_ROWS, N, N, N, 0};
    const struct tec_gated_args gated = {from, at.out, at.rows, N_ROWS, N, N, HALF, 0, HALF, 0};
    const struct tec_rope_args rope = {.qkv = from,
                                       .k = at.out,
                                       .v = at.out + SIZE / 2,
                                       .slot = at.index,
                                       .pos = at.index,
                                       .cos_sin = next == TEC_KERNEL_rope_bf16 ? at.x : NULL,
                                       .rows = at.rows,
                                       .max_rows = N_ROWS,
                                       .ld = N,
                                       .q_at = -1,
                                       .v_at = HALF,
                                       .kv_heads = 1,
                                       .head_dim = HALF};
    const void *args = next == TEC_KERNEL_gelu       ? (const void *)&map
                       : next == TEC_KERNEL_gelu_mul ? (const void *)&gated
                                                     : (const void *)&rope;
    tec_capture_add(c, next, args, true, "next");
}

enum about { PASSES = 1, ADDS = 2, OTHER = 4, BETWEEN = 8 };

/* product, [mark], next; kernels that this became, marks and the end apart. */
static int run(enum tec_kernel_id next, int about, float *y, float *out)
{
    struct tec_replay replay = {0};
    struct tec_capture *c = NULL;
    static float marked[SIZE];
    for (int i = 0; i < SIZE; i++)
        marked[i] = (float)(i % 23 - 11) / 8.0F;
    upload(at.y, marked, sizeof marked);
    upload(at.other, marked, sizeof marked);
    upload(at.out, marked, sizeof marked);
    const struct tec_gemm_args gemm = {.x = at.x,
                                       .w = at.w,
                                       .y = at.y,
                                       .rows = at.rows,
                                       .max_rows = N_ROWS,
                                       .ldx = N,
                                       .ldy = N,
                                       .n = N,
                                       .k = K,
                                       .add = (about & ADDS) != 0};
    REQUIRE(tec_capture_begin(&c, b.device, TEC_STREAM_MAIN, &b.arena, &err) == TEC_OK);
    tec_capture_add(c, TEC_KERNEL_gemm_bf16, &gemm, true, "product");
    if (about & PASSES)
        tec_capture_pass(c);
    if (about & BETWEEN)
        tec_capture_mark(c, 1);
    add_next(c, next, about & OTHER ? at.other : at.y);
    REQUIRE(tec_capture_end(c, &err) == TEC_OK);
    tec_device_replay(b.device, c, &replay);
    REQUIRE(replay.status == TEC_OK);
    int kernels = tec_capture_kernels(c) - 1 - ((about & BETWEEN) != 0);
    tec_capture_free(c);
    tec_device_download(b.device, TEC_STREAM_MAIN, y, at.y, SIZE * sizeof(float));
    tec_device_download(b.device, TEC_STREAM_MAIN, out, at.out, SIZE * sizeof(float));
    return kernels;
}

/* The same commands with and without; `together`: as one kernel, which leaves y alone. */
static void compare(enum tec_kernel_id next, int about, bool together)
{
    static float y[2][SIZE], out[2][SIZE];
    int apart = run(next, about & ~PASSES, y[0], out[0]);
    int kernels = run(next, about, y[1], out[1]);
    CHECK_INT(apart, ==, 2);
    CHECK_INT(kernels, ==, together ? 1 : 2);
    CHECK(memcmp(out[0], out[1], sizeof out[0]) == 0);
    CHECK((memcmp(y[0], y[1], sizeof y[0]) == 0) == !together);
}

static const enum tec_kernel_id nexts[] = {TEC_KERNEL_gelu, TEC_KERNEL_gelu_mul,
                                           TEC_KERNEL_rope_bf16, TEC_KERNEL_rope_f32};
enum { NEXTS = sizeof nexts / sizeof nexts[0] };

TEST(a_product_that_passes_is_done_with_its_reader)
{
    set_up();
    for (int i = 0; i < NEXTS; i++)
        compare(nexts[i], PASSES, true);
    tear_down();
}

TEST(a_product_that_others_read_is_written)
{
    set_up();
    for (int i = 0; i < NEXTS; i++)
        compare(nexts[i], 0, false);
    tear_down();
}

TEST(a_reader_of_something_else_stands_alone)
{
    set_up();
    for (int i = 0; i < NEXTS; i++)
        compare(nexts[i], PASSES | OTHER, false);
    tear_down();
}

TEST(what_adds_or_has_a_mark_behind_it_stands_alone)
{
    set_up();
    for (int i = 0; i < NEXTS; i++) {
        compare(nexts[i], PASSES | ADDS, false);
        compare(nexts[i], PASSES | BETWEEN, false);
    }
    tear_down();
}

TAP_MAIN
