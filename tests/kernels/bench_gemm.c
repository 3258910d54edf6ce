/* bench_gemm.c - times the matrix products of real models' layers against what the machine can do.
 *
 * Weights rotate through more memory than the caches hold. The fraction shown is of the time that
 * the peaks measured alongside allow. */
#include "kernels/int4.h"
#include "kernels/int8.h"
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/peaks.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 560, GROUP = 128 };
static const size_t pool_size = (size_t)320 << 20;

struct bench {
    const char *name; /* of what is multiplied, beside others */
    bool int4;
    void (*gemm)(const struct tec_gemm_args *a, struct tec_part part);
    struct tec_gemm_args args;
    const char *pool;
    size_t one; /* bytes of one matrix */
    int copies, at;
};

static void job(void *user, struct tec_part part, int rep)
{
    const struct bench *b = user;
    struct tec_gemm_args a = b->args;
    a.w = b->pool + b->one * (size_t)((b->at + rep) % b->copies);
    b->gemm(&a, part);
}

struct peak {
    double read, fma;
};

static void bench_one(struct bench *b, enum tec_tier tier, int lanes, int rows, struct peak peak)
{
    double weights = (double)b->one, median;
    double flops = 2.0 * rows * b->args.n * b->args.k;
    b->args.rows = &rows;
    int reps = flops > 4e9 ? 5 : flops > 4e8 ? 12 : 30;
    double best = peaks_measure(job, b, lanes, reps, &median);
    b->at = (b->at + reps) % b->copies;
    double by_memory = weights / (peak.read * 1e9), by_sums = flops / (peak.fma * 1e9);
    double least = by_memory > by_sums ? by_memory : by_sums;
    printf("# %-6s %d threads  %5d x %5d  rows %3d  %7.2f GB/s %7.1f GF/s  best %.2f of peak "
           "(median %.2f)\n",
           tec_tier_name(tier), lanes, b->args.k, b->args.n, rows, weights / best * 1e-9,
           flops / best * 1e-9, least / best, least / median);
}

static void bench_shape(struct bench *b, enum tec_tier tier, int k, int n)
{
    static const int rows[] = {1, 2, 4, 8, 16, 51, 256, MAX_ROWS};
    b->args.k = b->args.ldx = k;
    b->args.n = b->args.ldy = n;
    b->args.max_rows = MAX_ROWS;
    b->one = b->int4 ? tec_int4_size(n, k, GROUP) : tec_matrix_size(TEC_MATRIX_PANELS, true, n, k);
    b->copies = (int)(pool_size / b->one);
    for (int lanes = 1; lanes <= 2; lanes++) {
        struct peak peak = {peaks_read(b->pool, b->one * (size_t)b->copies, lanes),
                            peaks_fma(tier, lanes)};
        printf("# %s %d threads: reads %.1f GB/s, multiplies and adds %.0f GF/s\n",
               tec_tier_name(tier), lanes, peak.read, peak.fma);
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            bench_one(b, tier, lanes, rows[r], peak);
    }
}

static void bench_tier(enum tec_tier tier, bool int4, char *pool, float *x, float *y)
{
    static const int shapes[][2] = {{2048, 16384}, {16384, 2048}, {2048, 2560},
                                    {1024, 4096},  {4096, 1024},  {1152, 4304}};
    struct tec_kernels kernels = tec_kernels_for(tier);
    struct bench b = {
        .int4 = int4, .gemm = int4 ? kernels.gemm_int4 : kernels.gemm_bf16, .pool = pool};
    b.args.group = int4 ? GROUP : 0;
    b.args.x = x;
    b.args.y = y;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        bench_shape(&b, tier, shapes[s][0], shapes[s][1]);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many times as fast as another: the median of pairs that are timed in turn, since a machine
 * that others use is slow for a while, and then for both. */
static void bench_pair(struct bench *base, struct bench *other, enum tec_tier tier, int lanes,
                       int rows)
{
    enum { PAIRS = 9 };
    double ratios[PAIRS], rates[PAIRS], unused;
    int reps = rows > 64 ? 1 : rows > 8 ? 4 : 10;
    base->args.rows = other->args.rows = &rows;
    for (int i = 0; i < PAIRS; i++) {
        double slow = peaks_measure(job, base, lanes, reps, &unused);
        double fast = peaks_measure(job, other, lanes, reps, &unused);
        ratios[i] = slow / fast;
        rates[i] = (double)other->one / fast * 1e-9;
        base->at = (base->at + reps) % base->copies;
        other->at = (other->at + reps) % other->copies;
    }
    qsort(ratios, PAIRS, sizeof *ratios, by_size);
    qsort(rates, PAIRS, sizeof *rates, by_size);
    printf("# %-6s %d threads  %5d x %5d  rows %3d  %s is %.2f x %s (%.2f .. %.2f), %.1f GB/s\n",
           tec_tier_name(tier), lanes, other->args.k, other->args.n, rows, other->name,
           ratios[PAIRS / 2], base->name, ratios[PAIRS / 4], ratios[PAIRS * 3 / 4],
           rates[PAIRS / 2]);
}

/* x as so many bf16 terms, beside all of x. */
static void bench_terms_of(const struct bench *base, enum tec_tier tier, int terms, int k, int n)
{
    static const int rows[] = {1, 8, 16, 64, 532};
    struct bench all = *base, some = *base;
    all.args.k = all.args.ldx = k;
    all.args.n = all.args.ldy = n;
    all.one = some.one = tec_matrix_size(TEC_MATRIX_PANELS, true, n, k);
    all.copies = some.copies = (int)(pool_size / all.one);
    some.name = terms == 1 ? "one term" : "two terms";
    some.args = all.args;
    some.args.terms = 2;
    some.args.rounded = terms == 1;
    for (int lanes = 1; lanes <= 2; lanes++)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            bench_pair(&all, &some, tier, lanes, rows[r]);
}

/* Two where there is a tile unit, one where there are products of pairs, too; elsewhere nothing is
 * gained. The shapes are of Gemma 2B. */
static void bench_terms(enum tec_tier tier, char *pool, float *x, float *y)
{
    static const int shapes[][2] = {{2048, 2048}, {2048, 16384}, {16384, 2048}};
    struct tec_kernels kernels = tec_kernels_for(tier);
    bool tiles = conform_has_tiles(&kernels);
    struct bench base = {.name = "bf16", .gemm = kernels.gemm_bf16, .pool = pool};
    base.args = (struct tec_gemm_args){.x = x, .y = y, .max_rows = MAX_ROWS};
    for (int terms = 1;
         terms <= tiles + (tiles || conform_has_pairs(&kernels) || conform_has_matrices(&kernels));
         terms++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            bench_terms_of(&base, tier, terms, shapes[s][0], shapes[s][1]);
}

/* Products of one shape, by weights of 16, 8 and 4 bits. */
struct bits {
    struct bench bf16, int8, one, int4;
};

static struct bits bits_of(enum tec_tier tier, char *pool, const struct tec_gemm_args *args)
{
    const struct tec_kernels kernels = tec_kernels_for(tier);
    const int n = args->n, k = args->k;
    struct bits b = {
        .bf16 = {.name = "bf16", .gemm = kernels.gemm_bf16, .pool = pool, .args = *args},
        .int8 = {.name = "int8", .gemm = kernels.gemm_int8, .pool = pool, .args = *args},
        .int4 = {.name = "int4", .gemm = kernels.gemm_int4, .pool = pool, .args = *args}};
    b.int4.args.group = TEC_INT4_GROUP;
    b.bf16.one = tec_matrix_size(TEC_MATRIX_PANELS, true, n, k);
    b.int8.one = tec_int8_size(n, k);
    b.int4.one = tec_int4_size(n, k, TEC_INT4_GROUP);
    b.bf16.copies = (int)(pool_size / b.bf16.one);
    b.int8.copies = (int)(pool_size / b.int8.one);
    b.int4.copies = (int)(pool_size / b.int4.one);
    b.one = b.int8;
    b.one.name = "int8, x in 8 bits,";
    b.one.args.digits = 1;
    return b;
}

/* Weights that are rounded when they are loaded, beside bf16; of 4 bits beside 8, too, with x in 16
 * bits and in 24; of 8 bits with x in 8 bits, too. */
static void bench_bits(struct bits *b, enum tec_tier tier, bool int4, int lanes)
{
    static const int rows[] = {1, 8, 64, 256, 532};
    struct bench half = b->int4, *few = int4 ? &half : &b->int8;
    half.name = "int4, x in 16 bits,";
    half.args.digits = 2;
    printf("# %s %d threads: reads %.1f GB/s\n", tec_tier_name(tier), lanes,
           peaks_read(few->pool, few->one * (size_t)few->copies, lanes));
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        bench_pair(&b->bf16, few, tier, lanes, rows[r]);
        if (int4) {
            bench_pair(&b->int8, few, tier, lanes, rows[r]);
            bench_pair(&b->int8, &b->int4, tier, lanes, rows[r]);
        } else {
            bench_pair(&b->int8, &b->one, tier, lanes, rows[r]);
        }
    }
}

/* The shapes are of Gemma 2B and of Qwen2 1.5B. */
static void bench_rounded(enum tec_tier tier, bool int4, char *pool, float *x, float *y)
{
    static const int shapes[][2] = {
        {2048, 2048}, {2048, 16384}, {16384, 2048}, {1536, 8960}, {8960, 1536}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int k = shapes[s][0], n = shapes[s][1];
        const struct tec_gemm_args args = {
            .x = x, .y = y, .k = k, .ldx = k, .n = n, .ldy = n, .max_rows = MAX_ROWS};
        struct bits b = bits_of(tier, pool, &args);
        for (int lanes = 1; lanes <= 2; lanes++)
            bench_bits(&b, tier, int4, lanes);
    }
}

void conform_bench_gemm(const char *pattern)
{
    bool bf16 = fnmatch(pattern, "gemm_bf16", 0) == 0, int4 = fnmatch(pattern, "gemm_int4", 0) == 0;
    bool int8 = fnmatch(pattern, "gemm_int8", 0) == 0;
    if (!bf16 && !int4 && !int8)
        return;
    for (int lanes = 1; bf16 && lanes <= 2 && peaks_bf16(1) > 0; lanes++)
        printf("# %d threads: vdpbf16ps %.0f GF/s, multiplies and adds %.0f GF/s\n", lanes,
               peaks_bf16(lanes), peaks_fma(TEC_TIER_avx512, lanes));
    char *pool = aligned_alloc(64, pool_size);
    float *x = malloc((size_t)MAX_ROWS * 16384 * sizeof *x);
    float *y = malloc((size_t)MAX_ROWS * 16384 * sizeof *y);
    if (!pool || !x || !y)
        abort();
    for (size_t i = 0; i < pool_size / 2; i++)
        ((uint16_t *)(void *)pool)[i] = (uint16_t)(0x3c00U + (i * 2654435761U >> 8) % 0x300U);
    for (size_t i = 0; i < (size_t)MAX_ROWS * 16384; i++)
        x[i] = (float)(int)(i % 255) / 128.0F - 1.0F;
    memset(y, 0, (size_t)MAX_ROWS * 16384 * sizeof *y);
    for (int t = TEC_TIER_ref + 1; t < TEC_TIER_COUNT; t++) {
        if (bf16 && tec_tier_runs_here((enum tec_tier)t))
            bench_tier((enum tec_tier)t, false, pool, x, y);
        if (bf16 && tec_tier_runs_here((enum tec_tier)t))
            bench_terms((enum tec_tier)t, pool, x, y);
        if ((int4 || int8) && tec_tier_runs_here((enum tec_tier)t))
            bench_rounded((enum tec_tier)t, int4, pool, x, y);
        if (int4 && tec_tier_runs_here((enum tec_tier)t))
            bench_tier((enum tec_tier)t, true, pool, x, y);
    }
    free(pool);
    free(x);
    free(y);
}

void conform_print_peaks(void)
{
    size_t size = (size_t)256 << 20;
    char *memory = aligned_alloc(64, size);
    if (!memory)
        abort();
    memset(memory, 1, size);
    enum tec_tier tier = tec_tier_best();
    for (int lanes = 1; lanes <= 2; lanes++)
        printf("{\"lanes\": %d, \"fma_gflops\": %.1f, \"bf16_gflops\": %.1f, \"int8_gops\": %.1f, "
               "\"tiles_gflops\": %.1f, \"tiles_gops\": %.1f, \"read_gb_s\": %.2f}\n",
               lanes, peaks_fma(tier, lanes), peaks_bf16(lanes), peaks_int8(lanes),
               peaks_tiles(false, lanes), peaks_tiles(true, lanes),
               peaks_read(memory, size, lanes));
    free(memory);
}
