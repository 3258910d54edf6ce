/* squares.c - sums of squares that a product leaves for the norm behind it: in a list, in a loop,
 * in a branch and beside it, and where something stands in between, results are those of the
 * commands one by one. */
#include "kernels/grids.h"
#include "kernels/int8.h"
#include "kernels/matrix.h"
#include "tests/cuda/bench.h"

#include <stdlib.h>

enum { N_ROWS = 40, X = 64, Y = 128, MOST = N_ROWS * Y, WAYS = 2, TURNS = 3 };

static struct bench b;
static struct tec_error err;

/* What one capture works on; all on the device. The second way is that of a branch. */
static struct {
    struct way {
        float *x, *mid, *y;
    } ways[WAYS];
    void *down, *up; /* matrices: X x Y, Y x X */
    enum tec_kernel_id kernel_of_down, kernel_of_up;
    int *counts; /* rows, turns, whether to stop */
} at;

static void *take_matrix(enum tec_kernel_id kernel, int n, int k)
{
    static float values[MOST];
    bool int8 = kernel == TEC_KERNEL_gemm_int8;
    size_t packed = int8 ? tec_int8_size(n, k) : tec_matrix_size(TEC_MATRIX_TILES, true, n, k);
    int given = n < MOST / k ? n : MOST / k;
    void *w = calloc(1, packed), *there = bench_get(&b, packed);
    REQUIRE(w);
    for (int i = 0; i < n * k && i < MOST; i++)
        values[i] = (float)(i * 41 % 103 - 51) / 256.0F;
    if (int8)
        tec_int8_pack(w, given, k, 0, given, values);
    else
        tec_matrix_pack(w, TEC_MATRIX_TILES, true, n, k, 0, given, values);
    bench_upload(&b, there, w, packed);
    free(w);
    return there;
}

static void set_up(int capability, enum tec_kernel_id down, enum tec_kernel_id up,
                   enum cuda_emulator_when when, unsigned seed)
{
    const int counts[3] = {N_ROWS - 3, TURNS, 0};
    bench_clean();
    cuda_emulator_device(capability, 132, (size_t)8 << 30);
    cuda_emulator_timing(when, seed);
    bench_branches = true;
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    bench_branches = false;
    for (int i = 0; i < WAYS; i++)
        at.ways[i] =
            (struct way){bench_get(&b, MOST * sizeof(float)), bench_get(&b, MOST * sizeof(float)),
                         bench_get(&b, MOST * sizeof(float))};
    at.kernel_of_down = down;
    at.kernel_of_up = up;
    at.down = take_matrix(down, X, Y);
    at.up = take_matrix(up, Y, X);
    at.counts = bench_get(&b, sizeof counts);
    bench_upload(&b, at.counts, counts, sizeof counts);
}

static void tear_down(void)
{
    for (int i = 0; i < WAYS; i++) {
        tec_device_put(b.device, at.ways[i].x);
        tec_device_put(b.device, at.ways[i].mid);
        tec_device_put(b.device, at.ways[i].y);
    }
    tec_device_put(b.device, at.down);
    tec_device_put(b.device, at.up);
    tec_device_put(b.device, at.counts);
    bench_close(&b);
    bench_check_empty();
    bench_clean();
}

/* x += y down, which leaves sums where the norm directly behind it wants them. */
static void add_down(struct tec_capture *c, const struct way *way)
{
    const struct tec_gemm_args down = {.x = way->y,
                                       .w = at.down,
                                       .y = way->x,
                                       .rows = at.counts,
                                       .max_rows = N_ROWS,
                                       .ldx = Y,
                                       .ldy = X,
                                       .n = X,
                                       .k = Y,
                                       .add = 1};
    tec_capture_add(c, at.kernel_of_down, &down, true, "down");
}

/* x = gelu(x): what has been left for it is stale. */
static void add_other(struct tec_capture *c, const struct way *way)
{
    const struct tec_map_args map = {way->x, way->x, at.counts, N_ROWS, X, X, X, 0};
    tec_capture_add(c, TEC_KERNEL_gelu, &map, true, "other");
}

/* y = norm(x) up. */
static void add_up(struct tec_capture *c, const struct way *way, bool passes)
{
    const struct tec_norm_args norm = {.x = way->x,
                                       .y = way->mid,
                                       .rows = at.counts,
                                       .max_rows = N_ROWS,
                                       .ldx = X,
                                       .ldy = X,
                                       .cols = X,
                                       .offset = 1.0F,
                                       .eps = 1e-6F};
    const struct tec_gemm_args up = {.x = way->mid,
                                     .w = at.up,
                                     .y = way->y,
                                     .rows = at.counts,
                                     .max_rows = N_ROWS,
                                     .ldx = X,
                                     .ldy = Y,
                                     .n = Y,
                                     .k = X};
    tec_capture_add(c, TEC_KERNEL_rmsnorm, &norm, true, "norm");
    if (passes)
        tec_capture_pass(c);
    tec_capture_add(c, at.kernel_of_up, &up, true, "up");
}

enum list { PLAIN, TWICE, OTHER_BETWEEN, LEFT_THEN_OTHER, LOOP, LOOP_BETWEEN, BRANCH, LISTS };

static void add_list(struct tec_capture *c, enum list list, bool passes)
{
    const struct way *way = &at.ways[0], *other = &at.ways[1];
    if (list == BRANCH) {
        tec_capture_branch(c, true);
        add_down(c, other);
        add_up(c, other, passes);
        tec_capture_branch(c, false);
    }
    if (list == LOOP)
        tec_capture_repeat(c, at.counts + 1, at.counts + 2);
    add_down(c, way);
    if (list == OTHER_BETWEEN)
        add_other(c, way);
    if (list == LOOP_BETWEEN)
        tec_capture_repeat(c, at.counts + 1, at.counts + 2);
    add_up(c, way, passes);
    if (list == LEFT_THEN_OTHER) {
        add_other(c, way);
        add_up(c, way, passes);
    }
    if (list == TWICE || list == LOOP_BETWEEN)
        add_down(c, way);
    if (list == TWICE)
        add_up(c, way, passes);
    if (list == LOOP || list == LOOP_BETWEEN)
        tec_capture_repeat_end(c);
    if (list == BRANCH) {
        tec_capture_join(c);
        add_down(c, other);
    }
}

/* What a capture came to. */
struct outcome {
    float x[WAYS][MOST], y[WAYS][MOST];
    int kernels, told;
};

static void count_start(void *user, const struct tec_grid *grid)
{
    int *starts = user;
    (void)grid;
    ++*starts;
}

static void run(int capability, enum list list, bool passes, struct outcome *o)
{
    const struct tec_cuda_facts facts = {capability,
                                         132,
                                         capability == 90,
                                         TEC_CUDA_PARTIALS,
                                         TEC_CUDA_TERMS,
                                         TEC_CUDA_SQUARES,
                                         capability == 90 ? TEC_CUDA_CLUSTERS : 0};
    static float values[MOST];
    struct tec_replay replay = {0};
    struct tec_capture *c = NULL;
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < MOST; i++)
            values[i] = (float)(i * 29 % 67 - 33) / (16.0F + (float)way);
        bench_upload(&b, at.ways[way].x, values, sizeof values);
        bench_upload(&b, at.ways[way].y, values, sizeof values);
    }
    REQUIRE(tec_capture_begin(&c, b.device, TEC_STREAM_MAIN, &b.arena, &err) == TEC_OK);
    add_list(c, list, passes);
    REQUIRE(tec_capture_end(c, &err) == TEC_OK);
    tec_device_replay(b.device, c, &replay);
    REQUIRE(replay.status == TEC_OK);
    o->kernels = tec_capture_kernels(c);
    o->told = 0;
    for (int i = 0; i < tec_capture_commands(c);)
        i += tec_grids_at(c, i, &facts, count_start, &o->told);
    tec_capture_free(c);
    for (int i = 0; i < WAYS; i++) {
        tec_device_download(b.device, TEC_STREAM_MAIN, o->x[i], at.ways[i].x, sizeof o->x[i]);
        tec_device_download(b.device, TEC_STREAM_MAIN, o->y[i], at.ways[i].y, sizeof o->y[i]);
    }
}

/* 40 rows have a norm of their own in front of a product by warp groups, but where sums were left.
 * Others begin with it either way. */
static void compare(int capability, enum list list)
{
    static const int norms[LISTS] = {1, 2, 1, 2, 1, 1, 2}, left[LISTS] = {1, 2, 0, 1, 1, 0, 2};
    static struct outcome apart, o;
    bool groups = capability == 90 && at.kernel_of_up == TEC_KERNEL_gemm_bf16;
    run(capability, list, false, &apart);
    run(capability, list, true, &o);
    CHECK_INT(apart.kernels - o.kernels, ==, groups ? left[list] : norms[list]);
    CHECK_INT(apart.told - o.told, ==, apart.kernels - o.kernels);
    CHECK(memcmp(o.x, apart.x, sizeof o.x) == 0);
    CHECK(memcmp(o.y, apart.y, sizeof o.y) == 0);
}

static void compare_all(int capability, enum tec_kernel_id down, enum tec_kernel_id up)
{
    set_up(capability, down, up, CUDA_EMULATOR_LOWEST, 0);
    for (int list = 0; list < LISTS; list++)
        compare(capability, (enum list)list);
    tear_down();
}

TEST(what_is_left_gives_the_bytes_of_a_norm_by_warp_groups)
{
    compare_all(90, TEC_KERNEL_gemm_bf16, TEC_KERNEL_gemm_bf16);
}

TEST(what_is_left_gives_the_bytes_of_a_norm_elsewhere)
{
    compare_all(89, TEC_KERNEL_gemm_bf16, TEC_KERNEL_gemm_bf16);
}

TEST(products_of_8_bit_weights_leave_and_take_it)
{
    for (int capability = 89; capability <= 90; capability++) {
        compare_all(capability, TEC_KERNEL_gemm_int8, TEC_KERNEL_gemm_int8);
        compare_all(capability, TEC_KERNEL_gemm_int8, TEC_KERNEL_gemm_bf16);
        compare_all(capability, TEC_KERNEL_gemm_bf16, TEC_KERNEL_gemm_int8);
    }
}

/* Both ways have sums at the same time, each in memory of its stream. */
TEST(a_branch_and_what_is_beside_it_have_sums_of_their_own)
{
    static const enum cuda_emulator_when whens[] = {CUDA_EMULATOR_LOWEST, CUDA_EMULATOR_HIGHEST,
                                                    CUDA_EMULATOR_SHUFFLED, CUDA_EMULATOR_EARLY};
    for (unsigned i = 0; i < sizeof whens / sizeof whens[0]; i++) {
        set_up(90, TEC_KERNEL_gemm_bf16, TEC_KERNEL_gemm_bf16, whens[i], i);
        compare(90, BRANCH);
        tear_down();
    }
}

TAP_MAIN
