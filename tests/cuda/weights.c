/* weights.c - a matrix of many chunks is on the device as if it had been packed in one piece. */
#include "graph/model/packer.h"
#include "kernels/matrix.h"
#include "tests/cuda/bench.h"

#include <stdlib.h>

enum { N = 2100, K = 260, FROM = 4, USED = 250 };

static struct bench b;
static struct tec_error err;

static void *get(size_t size)
{
    void *p = calloc(1, size);
    REQUIRE(p);
    return p;
}

static void check(bool bf16)
{
    const struct tec_weight_source source = {.seed = 7};
    const struct tec_found found = {.name = "w", .rows = N, .cols = K};
    const struct tec_packed_columns columns = {FROM, USED, bf16, 0};
    size_t size = tec_matrix_size(TEC_MATRIX_TILES, bf16, N, USED);
    float *all = get((size_t)N * K * sizeof *all), *kept = get((size_t)N * USED * sizeof *kept);
    unsigned char *want = get(size), *got = get(size), *there = tec_device_get(b.device, size);
    struct tec_packer packer;
    REQUIRE(there && tec_weight_rows(&source, &found, 0, N, all, &err) == TEC_OK);
    for (size_t r = 0; r < N; r++)
        memcpy(kept + r * USED, all + r * K + FROM, USED * sizeof *kept);
    tec_matrix_pack(want, TEC_MATRIX_TILES, bf16, N, USED, 0, N, kept);
    tec_packer_open(&packer, &source, b.device, &b.heap);
    CHECK_INT(tec_packer_rows(&packer, &found, columns, there, &err), ==, TEC_OK);
    tec_packer_close(&packer);
    tec_device_download(b.device, TEC_STREAM_MAIN, got, there, size);
    CHECK(memcmp(got, want, size) == 0);
    tec_device_put(b.device, there);
    free(all);
    free(kept);
    free(want);
    free(got);
}

TEST(a_matrix_of_many_chunks_is_whole)
{
    for (int order = 0; order < 2; order++) {
        bench_clean();
        cuda_emulator_timing(order ? CUDA_EMULATOR_EARLY : CUDA_EMULATOR_LOWEST, 0);
        REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
        check(false);
        check(true);
        bench_close(&b);
        bench_check_empty();
    }
}

TAP_MAIN
