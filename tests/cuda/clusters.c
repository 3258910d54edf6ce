/* clusters.c - when the blocks of a split product are clusters: where the device has room for them,
 * nobody has switched them off and no call has failed. Results are the same bytes. */
#include "kernels/matrix.h"
#include "tests/cuda/bench.h"

#include <stdlib.h>

enum { N_ROWS = 40, N = 64, SPLITS = 16, PIECE = 8 * 16, K = SPLITS * PIECE };

static struct bench b;
static struct tec_error err;

static struct {
    float *x, *y;
    void *w;
    int *rows;
} at;

static float values[N * K];

static void open_device(int capability, int processors, const char *wanted)
{
    const int rows = N_ROWS - 3;
    cuda_emulator_device(capability, processors, (size_t)8 << 30);
    if (wanted)
        setenv("TECTUM_CUDA_CLUSTERS", wanted, 1);
    enum tec_status status = bench_open(&b, 0, 0, &err);
    unsetenv("TECTUM_CUDA_CLUSTERS");
    REQUIRE(status == TEC_OK);
    for (int i = 0; i < N * K; i++)
        values[i] = (float)(i * 41 % 103 - 51) / 256.0F;
    at.x = bench_get(&b, N_ROWS * K * sizeof(float));
    at.y = bench_get(&b, N_ROWS * N * sizeof(float));
    at.rows = bench_get(&b, sizeof rows);
    at.w = bench_get(&b, tec_matrix_size(TEC_MATRIX_TILES, true, N, K));
    bench_upload(&b, at.x, values, N_ROWS * K * sizeof(float));
    bench_upload(&b, at.y, values, N_ROWS * N * sizeof(float));
    bench_upload(&b, at.rows, &rows, sizeof rows);
}

/* Weights of k columns. */
static void upload_weights(int k)
{
    size_t packed = tec_matrix_size(TEC_MATRIX_TILES, true, N, k);
    void *w = calloc(1, packed);
    REQUIRE(w);
    tec_matrix_pack(w, TEC_MATRIX_TILES, true, N, k, 0, N, values);
    bench_upload(&b, at.w, w, packed);
    free(w);
}

/* One product of so many splits: its bytes, and the blocks of its clusters. */
static enum tec_status run(int splits, float y[N_ROWS * N], unsigned *cluster)
{
    struct tec_replay replay = {0};
    struct tec_capture *c = NULL;
    struct cuda_emulator_grid grid = {.cluster = 0};
    const struct tec_gemm_args a = {.x = at.x,
                                    .w = at.w,
                                    .y = at.y,
                                    .rows = at.rows,
                                    .max_rows = N_ROWS,
                                    .ldx = K,
                                    .ldy = N,
                                    .n = N,
                                    .k = splits * PIECE};
    upload_weights(a.k);
    cuda_emulator_counters_clear();
    REQUIRE(tec_capture_begin(&c, b.device, TEC_STREAM_MAIN, &b.arena, &err) == TEC_OK);
    tec_capture_add(c, TEC_KERNEL_gemm_bf16, &a, true, "product");
    enum tec_status status = tec_capture_end(c, &err);
    if (status == TEC_OK) {
        REQUIRE(cuda_emulator_grids(&grid, 1) == 1);
        tec_device_replay(b.device, c, &replay);
        REQUIRE(replay.status == TEC_OK);
        tec_device_download(b.device, TEC_STREAM_MAIN, y, at.y, N_ROWS * N * sizeof(float));
    }
    *cluster = grid.cluster;
    tec_capture_free(c);
    return status;
}

static void close_device(void)
{
    tec_device_put(b.device, at.x);
    tec_device_put(b.device, at.y);
    tec_device_put(b.device, at.rows);
    tec_device_put(b.device, at.w);
    bench_close(&b);
    bench_clean();
}

/* Of 16 splits and of six; a call that fails, the nth of the opening. */
static const struct about {
    int processors;
    const char *wanted, *call;
    int nth;
    unsigned of_sixteen, of_six;
} abouts[] = {
    {132, "0", NULL, 0, 1, 1},
    {132, NULL, NULL, 0, 16, 6},
    {132, "1", NULL, 0, 16, 6},
    {4, NULL, NULL, 0, 1, 6}, /* eight blocks find room at the same time */
    {1, NULL, NULL, 0, 1, 1},
    {132, NULL, "cudaOccupancyMaxActiveClusters", 14, 1, 6}, /* 3 to 16 are asked for */
    {132, NULL, "cudaOccupancyMaxActiveClusters", 4, 16, 1},
    {132, NULL, "cudaFuncSetAttribute", 1, 1, 1},
    {132, NULL, "cudaFuncSetAttribute", 2, 1, 1},
};

TEST(clusters_are_where_they_find_room)
{
    static float first[2][N_ROWS * N], y[N_ROWS * N];
    for (size_t i = 0; i < sizeof abouts / sizeof abouts[0]; i++) {
        const struct about *o = &abouts[i];
        unsigned cluster;
        bench_clean();
        if (o->call)
            cuda_emulator_fail(o->call, o->nth, cudaErrorUnknown);
        open_device(90, o->processors, o->wanted);
        for (int six = 0; six < 2; six++) {
            REQUIRE(run(six ? 6 : SPLITS, y, &cluster) == TEC_OK);
            CHECK_INT(cluster, ==, six ? o->of_six : o->of_sixteen);
            if (i == 0)
                memcpy(first[six], y, sizeof y);
            CHECK(memcmp(first[six], y, sizeof y) == 0);
        }
        close_device();
    }
}

TEST(other_devices_have_none)
{
    static const int capabilities[] = {80, 89, 100, 120};
    static float y[N_ROWS * N];
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) {
        unsigned cluster;
        bench_clean();
        open_device(capabilities[i], 132, NULL);
        CHECK_INT(cuda_emulator_calls("cudaOccupancyMaxActiveClusters"), ==, 0);
        REQUIRE(run(SPLITS, y, &cluster) == TEC_OK);
        CHECK_INT(cluster, ==, 1);
        close_device();
    }
}

/* A kernel of more than eight blocks in a cluster must be allowed to, each by itself. */
TEST(a_start_may_fail)
{
    static float y[N_ROWS * N];
    unsigned cluster;
    bench_clean();
    open_device(90, 132, NULL);
    cuda_emulator_fail("cudaFuncSetAttribute", 1, cudaErrorUnknown);
    CHECK_INT(run(SPLITS, y, &cluster), ==, TEC_DEVICE);
    CHECK(strstr(err.message, "cuda:0: capture of product, whose blocks are in clusters of up to "
                              "16 (without them: TECTUM_CUDA_CLUSTERS=0 ") == err.message);
    close_device();
}

/* What can help is said, and nothing else: where a graph is made of such starts, not where there
 * are none. */
TEST(a_start_that_fails_says_what_is_without)
{
    static float y[N_ROWS * N];
    static const char *const calls[] = {"cudaLaunchKernelEx", "cudaGraphInstantiate"};
    static const char *const words[] = {
        "cuda:0: capture of product, whose blocks are in clusters of up to 16 (without them: "
        "TECTUM_CUDA_CLUSTERS=0 in the environment): ",
        "cuda:0: making a graph with some kernels in clusters of up to 16 (without them: "
        "TECTUM_CUDA_CLUSTERS=0 in the environment): ",
        "cuda:0: capture of product: ", "cuda:0: making a graph: "};
    unsigned cluster;
    for (int i = 0; i < 4; i++) {
        bench_clean();
        open_device(90, 132, i < 2 ? NULL : "0");
        cuda_emulator_fail(calls[i % 2], 1, cudaErrorLaunchOutOfResources);
        CHECK_INT(run(SPLITS, y, &cluster), ==, TEC_DEVICE);
        CHECK(strstr(err.message, words[i]) == err.message);
        CHECK(strstr(err.message, "(cudaErrorLaunchOutOfResources)") != NULL);
        close_device();
    }
}

TEST(memory_that_ends_is_not_for_want_of_clusters)
{
    static float y[N_ROWS * N];
    unsigned cluster;
    bench_clean();
    open_device(90, 132, NULL);
    cuda_emulator_fail("cudaGraphInstantiate", 1, cudaErrorMemoryAllocation);
    CHECK_INT(run(SPLITS, y, &cluster), ==, TEC_NO_MEMORY);
    CHECK(strstr(err.message, "cuda:0: making a graph: ") == err.message);
    close_device();
}

TAP_MAIN
