/* peaks.c - measures what this machine can do at most, in arithmetic and in reading memory, next to
 * what a kernel does. */
#include "tests/kernels/peaks.h"
#include "base/spin.h"
#include "base/thread.h"
#include "kernels/unroll.h"
#include "tests/kernels/conform.h"

#if defined(__x86_64__)
#include "kernels/avx512/tiles.h"
#include <immintrin.h>
#define READ_TARGET __attribute__((target("avx2")))
#else
#include <arm_neon.h>
#define READ_TARGET
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MAX_REPS = 64, FMA_ROUNDS = 20000 };

struct team {
    void (*job)(void *user, struct tec_part part, int rep);
    void *user;
    int lanes, reps;
    atomic_int arrived;
    double took[MAX_REPS];
};
struct member {
    struct team *team;
    int lane;
};

static void meet(struct team *t, int count)
{
    int turns = 0;
    atomic_fetch_add(&t->arrived, 1);
    while (atomic_load(&t->arrived) < count)
        tec_spin(&turns);
}

static void *work(void *user)
{
    struct member *m = user;
    struct team *t = m->team;
    for (int rep = 0; rep < t->reps; rep++) {
        meet(t, (2 * rep + 1) * t->lanes);
        double start = conform_seconds();
        t->job(t->user, (struct tec_part){m->lane, t->lanes}, rep);
        meet(t, (2 * rep + 2) * t->lanes);
        if (m->lane == 0)
            t->took[rep] = conform_seconds() - start;
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double peaks_measure(void (*job)(void *user, struct tec_part part, int rep), void *user, int lanes,
                     int reps, double *median)
{
    struct team team = {.job = job, .user = user, .lanes = lanes < 2 ? 1 : 2};
    team.reps = reps < MAX_REPS ? reps : MAX_REPS;
    struct member members[2] = {{&team, 0}, {&team, 1}};
    pthread_t thread = {0};
    if (team.lanes == 2 && !tec_thread_start(&thread, work, &members[1]))
        abort();
    work(&members[0]);
    if (team.lanes == 2)
        pthread_join(thread, NULL);
    qsort(team.took, (size_t)team.reps, sizeof team.took[0], by_value);
    if (median)
        *median = team.took[team.reps / 2];
    return team.took[0];
}

/* Sums that nobody reads, kept so that the compiler does not drop the work. */
static volatile float sink[2][16];

/* Chains of multiply-adds, as many as registers hold, and the arithmetic of one round of them. */
struct chains {
    void (*run)(void *user, struct tec_part part, int rep);
    double flops;
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void fma_512(void *user, struct tec_part part, int rep)
{
    (void)user;
    (void)rep;
    __m512 sum[24], x = _mm512_set1_ps(0.999F);
    TEC_UNROLL
    for (int i = 0; i < 24; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (int round = 0; round < FMA_ROUNDS; round++)
        TEC_UNROLL
    for (int i = 0; i < 24; i++)
        sum[i] = _mm512_fmadd_ps(sum[i], x, x);
    TEC_UNROLL
    for (int i = 1; i < 24; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    sink[part.lane][0] = _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx2,fma"))) static void fma_256(void *user, struct tec_part part, int rep)
{
    (void)user;
    (void)rep;
    __m256 sum[12], x = _mm256_set1_ps(0.999F);
    TEC_UNROLL
    for (int i = 0; i < 12; i++)
        sum[i] = _mm256_set1_ps((float)i);
    for (int round = 0; round < FMA_ROUNDS; round++)
        TEC_UNROLL
    for (int i = 0; i < 12; i++)
        sum[i] = _mm256_fmadd_ps(sum[i], x, x);
    TEC_UNROLL
    for (int i = 1; i < 12; i++)
        sum[0] = _mm256_add_ps(sum[0], sum[i]);
    sink[part.lane][0] = _mm256_cvtss_f32(sum[0]);
}

__attribute__((target("avx512f,avx512bf16"))) static void pairs_512(void *user,
                                                                    struct tec_part part, int rep)
{
    (void)user;
    (void)rep;
    __m512 sum[24];
    __m512i x = _mm512_set1_epi32(0x3f7f3f7f); /* 0.996 twice */
    TEC_UNROLL
    for (int i = 0; i < 24; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (int round = 0; round < FMA_ROUNDS; round++)
        TEC_UNROLL
    for (int i = 0; i < 24; i++) /* the intrinsic's type differs from compiler to compiler */
        __asm__("vdpbf16ps %1, %1, %0" : "+v"(sum[i]) : "v"(x));
    TEC_UNROLL
    for (int i = 1; i < 24; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    sink[part.lane][0] = _mm512_cvtss_f32(sum[0]);
}

double peaks_bf16(int lanes)
{
    if (!__builtin_cpu_supports("avx512bf16"))
        return 0.0;
    double flops = 2.0 * FMA_ROUNDS * 24.0 * 32.0 * lanes;
    return flops / peaks_measure(pairs_512, NULL, lanes, 20, NULL) * 1e-9;
}

__attribute__((target("avx512f,avx512vnni"))) static void bytes_512(void *user,
                                                                    struct tec_part part, int rep)
{
    (void)user;
    (void)rep;
    __m512i sum[24], x = _mm512_set1_epi8(1);
    TEC_UNROLL
    for (int i = 0; i < 24; i++)
        sum[i] = _mm512_set1_epi32(i);
    for (int round = 0; round < FMA_ROUNDS; round++)
        TEC_UNROLL
    for (int i = 0; i < 24; i++) /* the compiler would add ones of a known x at once */
        __asm__("vpdpbusd %1, %1, %0" : "+v"(sum[i]) : "v"(x));
    TEC_UNROLL
    for (int i = 1; i < 24; i++)
        sum[0] = _mm512_add_epi32(sum[0], sum[i]);
    sink[part.lane][0] = (float)_mm512_reduce_add_epi32(sum[0]);
}

double peaks_int8(int lanes)
{
    if (!__builtin_cpu_supports("avx512vnni"))
        return 0.0;
    double ops = 2.0 * FMA_ROUNDS * 24.0 * 64.0 * lanes;
    return ops / peaks_measure(bytes_512, NULL, lanes, 20, NULL) * 1e-9;
}

/* Products of two tiles into four in turn; user: of bytes, NULL: of bf16. */
TILES_TARGET static void tiles(void *user, struct tec_part part, int rep)
{
    (void)part;
    (void)rep;
    TILES_START();
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_ZERO(4);
    TILE_ZERO(5);
    for (int round = 0; user && round < FMA_ROUNDS; round++) {
        TILE_DOT(0, 4, 5);
        TILE_DOT(1, 4, 5);
        TILE_DOT(2, 4, 5);
        TILE_DOT(3, 4, 5);
    }
    for (int round = 0; !user && round < FMA_ROUNDS; round++) {
        TILE_PRODUCT(0, 4, 5);
        TILE_PRODUCT(1, 4, 5);
        TILE_PRODUCT(2, 4, 5);
        TILE_PRODUCT(3, 4, 5);
    }
    TILES_STOP();
}

double peaks_tiles(bool bytes, int lanes)
{
    if (!tec_tier_has_tiles())
        return 0.0;
    double ops = 2.0 * FMA_ROUNDS * 4.0 * 16.0 * 16.0 * (bytes ? 64.0 : 32.0) * lanes;
    return ops / peaks_measure(tiles, bytes ? &bytes : NULL, lanes, 20, NULL) * 1e-9;
}

static struct chains chains_of(enum tec_tier tier)
{
    return tier == TEC_TIER_avx512 ? (struct chains){fma_512, 24.0 * 16.0}
                                   : (struct chains){fma_256, 12.0 * 8.0};
}
#else
static void fma_128(void *user, struct tec_part part, int rep)
{
    (void)user;
    (void)rep;
    float32x4_t sum[24], x = vdupq_n_f32(0.999F);
    TEC_UNROLL
    for (int i = 0; i < 24; i++)
        sum[i] = vdupq_n_f32((float)i);
    for (int round = 0; round < FMA_ROUNDS; round++)
        TEC_UNROLL
    for (int i = 0; i < 24; i++)
        sum[i] = vfmaq_f32(x, sum[i], x);
    TEC_UNROLL
    for (int i = 1; i < 24; i++)
        sum[0] = vaddq_f32(sum[0], sum[i]);
    sink[part.lane][0] = vgetq_lane_f32(sum[0], 0);
}

static struct chains chains_of(enum tec_tier tier)
{
    (void)tier;
    return (struct chains){fma_128, 24.0 * 4.0};
}

double peaks_bf16(int lanes)
{
    (void)lanes;
    return 0.0;
}

double peaks_int8(int lanes)
{
    (void)lanes;
    return 0.0;
}

double peaks_tiles(bool bytes, int lanes)
{
    (void)bytes;
    (void)lanes;
    return 0.0;
}
#endif

double peaks_fma(enum tec_tier tier, int lanes)
{
    struct chains chains = chains_of(tier);
    double flops = 2.0 * FMA_ROUNDS * chains.flops * lanes;
    return flops / peaks_measure(chains.run, NULL, lanes, 20, NULL) * 1e-9;
}

/* A piece is larger than a cache, and short enough to be read between two interruptions. */
struct region {
    const char *memory;
    size_t piece;
    int pieces;
};

typedef uint64_t words __attribute__((vector_size(32), aligned(8), may_alias));

/* Read the two halves of a share side by side with 32-byte loads, prefetched as far ahead as helps
 * most on x86: faster than one half after the other. */
READ_TARGET static void read_all(void *user, struct tec_part part, int rep)
{
    const struct region *all = user;
    size_t share = all->piece / (size_t)part.lanes / 512 * 512, half = share / 2;
    const char *from =
        all->memory + all->piece * (size_t)(rep % all->pieces) + share * (size_t)part.lane;
    words sum[8];
    TEC_UNROLL
    for (int i = 0; i < 8; i++)
        sum[i] = (words){0};
    for (size_t at = 0; at < half; at += 128) {
        TEC_UNROLL
        for (size_t i = 0; i < 4; i++)
            __builtin_prefetch(from + at + i / 2 * half + 2048 + i % 2 * 64);
        TEC_UNROLL
        for (size_t i = 0; i < 8; i++)
            sum[i] ^= *(const words *)(const void *)(from + at + i / 4 * half + i % 4 * 32);
    }
    TEC_UNROLL
    for (int i = 1; i < 8; i++)
        sum[0] ^= sum[i];
    sink[part.lane][1] = (float)sum[0][0];
}

double peaks_read(const void *memory, size_t size, int lanes)
{
    size_t piece = size < (size_t)16 << 20 ? size : (size_t)16 << 20;
    struct region all = {memory, piece, (int)(size / piece)};
    return (double)piece / peaks_measure(read_all, &all, lanes, 40, NULL) * 1e-9;
}
