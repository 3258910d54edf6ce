/* tiles_emulated.h - the tile unit of kernels/avx512/tiles.h in plain C, exact to the bit as its
 * manual describes it: so a kernel for it runs on every machine.
 *
 * Included in its place; each thread has its own tiles. A tile that was not started, or that was
 * never written, ends the program. */
#ifndef TEC_TESTS_KERNELS_TILES_EMULATED_H
#define TEC_TESTS_KERNELS_TILES_EMULATED_H

#include "kernels/bf16.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct tiles_emulated {
    bool started, written[8];
    unsigned char bytes[8][16][64];
    float whole[16];
};
static _Thread_local struct tiles_emulated tiles_emulated;

static inline unsigned char *tiles_emulated_at(int t, bool writes)
{
    struct tiles_emulated *e = &tiles_emulated;
    if (!e->started || !(e->written[t] |= writes))
        abort();
    return e->bytes[t][0];
}

/* What is below the normal range is a zero of its sign, read or written. */
static inline float tiles_emulated_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0F, x) : x;
}

/* bf16 number i of row r of a tile; float number i of it. */
static inline float tiles_emulated_half(const unsigned char *tile, int r, int i)
{
    uint16_t bits;
    memcpy(&bits, tile + 64 * r + 2 * i, sizeof bits);
    return tiles_emulated_flush(tec_bf16_float(bits));
}

/* For row m and column n: pairs of m's row of x with pairs of column n of w, the first of each in
 * one chain, the second in another; every step rounded to nearest even. */
static inline void tiles_emulated_product(int sums, int x, int w)
{
    const unsigned char *a = tiles_emulated_at(x, false), *b = tiles_emulated_at(w, false);
    unsigned char *to = tiles_emulated_at(sums, false);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++, to += sizeof(float)) {
            float chain[2] = {0.0F, 0.0F}, sum;
            for (int k = 0; k < 16; k++)
                for (int i = 0; i < 2; i++)
                    chain[i] =
                        tiles_emulated_flush(fmaf(tiles_emulated_half(a, m, 2 * k + i),
                                                  tiles_emulated_half(b, k, 2 * n + i), chain[i]));
            memcpy(&sum, to, sizeof sum);
            sum = tiles_emulated_flush(tiles_emulated_flush(sum) +
                                       tiles_emulated_flush(chain[0] + chain[1]));
            memcpy(to, &sum, sizeof sum);
        }
}

/* For row m and column n: four signed bytes of m's row of x with four of column n of w at a time,
 * added to a whole number of 32 bits. */
static inline void tiles_emulated_dot(int sums, int x, int w)
{
    const unsigned char *a = tiles_emulated_at(x, false), *b = tiles_emulated_at(w, false);
    unsigned char *to = tiles_emulated_at(sums, false);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++, to += sizeof(int32_t)) {
            int32_t sum;
            memcpy(&sum, to, sizeof sum);
            for (int k = 0; k < 64; k++)
                sum += (int8_t)a[64 * m + k] * (int8_t)b[64 * (k / 4) + 4 * n + k % 4];
            memcpy(to, &sum, sizeof sum);
        }
}

/* Sums of high and of low digits of so many columns as float32, in their place. */
static inline const float *tiles_emulated_whole(const int32_t *high, const int32_t *low, int count)
{
    for (int i = 0; i < count; i++)
        tiles_emulated.whole[i] = (float)(high[i] * 256 + low[i]);
    return tiles_emulated.whole;
}

/* So many whole sums as float32, in their place. */
static inline const float *tiles_emulated_alone(const int32_t *at, int count)
{
    for (int i = 0; i < count; i++)
        tiles_emulated.whole[i] = (float)at[i];
    return tiles_emulated.whole;
}

#define TILES_TARGET VEC_TARGET
#define TILES_START() ((void)(tiles_emulated = (struct tiles_emulated){.started = true}))
#define TILES_STOP() ((void)(tiles_emulated.started = false))
#define TILES_PAST(to, v) vec_store(to, v)
#define TILE_ZERO(t) ((void)memset(tiles_emulated_at(t, true), 0, 1024))
#define TILE_LOAD(t, at) ((void)memcpy(tiles_emulated_at(t, true), at, 1024))
#define TILE_STORE(t, at) ((void)memcpy(at, tiles_emulated_at(t, false), 1024))
#define TILE_PRODUCT(s, x, w) tiles_emulated_product(s, x, w)
#define TILE_WHOLE(high, low) vec_load(tiles_emulated_whole(high, low, VEC_WIDTH))
#define TILE_ALONE(at) vec_load(tiles_emulated_alone(at, VEC_WIDTH))
#define TILE_DOT(s, x, w) tiles_emulated_dot(s, x, w)

#endif
