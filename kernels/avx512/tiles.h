/* tiles.h - the tile unit of x86 (AMX) for kernels/panels/gemm_tiles.inc and gemm_int8_tiles.inc:
 * eight tiles of 16 rows of 64 bytes, products of bf16 pairs and of signed bytes.
 *
 * Inline assembly, as gcc 12 may drop the stores that a tile or the configuration is loaded from:
 * its intrinsics do not say that they read memory. */
#ifndef TEC_KERNELS_AVX512_TILES_H
#define TEC_KERNELS_AVX512_TILES_H

#include <stddef.h>

#define TILES_TARGET \
    __attribute__((  \
        target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16,amx-int8")))

/* What ldtilecfg reads. */
struct tiles_shapes {
    unsigned char palette, start, reserved[14];
    unsigned short bytes[16]; /* of a row of each tile */
    unsigned char rows[16];
};
static const struct tiles_shapes tiles_shapes = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

#define TILES_START() __asm__ volatile("ldtilecfg %0" : : "m"(tiles_shapes))
#define TILES_STOP() __asm__ volatile("tilerelease\n\tsfence" : : : "memory")

/* 16 floats that no cache keeps. Other threads see them after TILES_STOP. */
#define TILES_PAST(to, v) _mm512_stream_ps(to, v)

/* t, s, x, w are digits. Rows follow one another in memory. */
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)
#define TILE_LOAD(t, at) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(at), "r"((size_t)64) : "memory")
#define TILE_STORE(t, at) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(at), "r"((size_t)64) : "memory")
/* s += the product of x and w. */
#define TILE_PRODUCT(s, x, w) __asm__ volatile("tdpbf16ps %%tmm" #w ", %%tmm" #x ", %%tmm" #s : :)

/* Four signed bytes of a row of x times four of a column of w, added to a whole number of s. */
#define TILE_DOT(s, x, w) __asm__ volatile("tdpbssd %%tmm" #w ", %%tmm" #x ", %%tmm" #s : :)

/* Whole sums from memory as float32; 256 times the high digits' sums and the low ones'. */
#define TILE_ALONE(at) _mm512_cvtepi32_ps(_mm512_loadu_si512(at))
#define TILE_WHOLE(high, low) \
    _mm512_cvtepi32_ps(       \
        _mm512_add_epi32(_mm512_slli_epi32(_mm512_loadu_si512(high), 8), _mm512_loadu_si512(low)))

#endif
