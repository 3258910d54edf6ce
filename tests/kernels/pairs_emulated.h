/* pairs_emulated.h - vectors of 16 floats and dot products of bf16 pairs (`vdpbf16ps`) in plain C,
 * exact to the bit as the manual describes them: so kernels/panels/gemm_pairs.inc runs on every
 * machine, in the tile shapes that it has with AVX-512.
 *
 * Included in place of a tier's panels.h. */
#ifndef TEC_TESTS_KERNELS_PAIRS_EMULATED_H
#define TEC_TESTS_KERNELS_PAIRS_EMULATED_H

#include "kernels/bf16.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VEC_TARGET
#define VEC_INLINE static inline __attribute__((always_inline, unused))
/* Loops stay loops (kernels/unroll.h). */
#define TEC_UNROLL
/* A call each: in the place of each they would be much code. */
#define PAIRS_EMULATED static __attribute__((noinline, unused))

enum { VEC_WIDTH = 16, ROWS_TILE = 13, PANELS_TILE = 2, ROWS_FEW = 8, PANELS_FEW = 4 };

typedef struct vec_emulated {
    float at[VEC_WIDTH];
} vec;
typedef struct pairs_emulated {
    uint32_t at[VEC_WIDTH];
} pairs;

PAIRS_EMULATED vec vec_set(float x)
{
    vec v;
    for (int i = 0; i < VEC_WIDTH; i++)
        v.at[i] = x;
    return v;
}
PAIRS_EMULATED vec vec_load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
PAIRS_EMULATED vec vec_load_some(const float *p, int n)
{
    vec v = vec_set(0.0F);
    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}
PAIRS_EMULATED void vec_store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}
PAIRS_EMULATED vec vec_add(vec x, vec y)
{
    for (int i = 0; i < VEC_WIDTH; i++)
        x.at[i] += y.at[i];
    return x;
}
PAIRS_EMULATED vec vec_mul(vec x, vec y)
{
    for (int i = 0; i < VEC_WIDTH; i++)
        x.at[i] *= y.at[i];
    return x;
}
PAIRS_EMULATED vec vec_fma(vec x, vec y, vec z)
{
    for (int i = 0; i < VEC_WIDTH; i++)
        x.at[i] = fmaf(x.at[i], y.at[i], z.at[i]);
    return x;
}

/* Halves exchanged. */
PAIRS_EMULATED pairs pairs_load(const char *from)
{
    pairs p;
    memcpy(&p, from, sizeof p);
    for (int i = 0; i < VEC_WIDTH; i++)
        p.at[i] = p.at[i] << 16 | p.at[i] >> 16;
    return p;
}
/* The first of two values in the upper half. */
PAIRS_EMULATED void pairs_store(float *to, vec x)
{
    for (int i = 0; i < VEC_WIDTH; i += 2) {
        uint32_t pair = (uint32_t)tec_bf16_bits(x.at[i]) << 16 | tec_bf16_bits(x.at[i + 1]);
        memcpy(to + i / 2, &pair, sizeof pair);
    }
}
PAIRS_EMULATED void pairs_keep(float *to, pairs p)
{
    memcpy(to, &p, sizeof p);
}
PAIRS_EMULATED pairs pairs_kept(const float *from)
{
    pairs p;
    memcpy(&p, from, sizeof p);
    return p;
}
PAIRS_EMULATED pairs pairs_set(const float *x)
{
    pairs p;
    for (int i = 0; i < VEC_WIDTH; i++)
        memcpy(&p.at[i], x, sizeof *x);
    return p;
}

/* What is below the normal range is a zero of its sign, read or written. */
static inline float pairs_emulated_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0F, x) : x;
}
/* sum + w x, once rounded. */
static inline float pairs_emulated_step(float sum, uint32_t w, uint32_t x)
{
    return pairs_emulated_flush(fmaf(pairs_emulated_flush(tec_bf16_float((uint16_t)w)),
                                     pairs_emulated_flush(tec_bf16_float((uint16_t)x)), sum));
}
/* Upper halves first; every step rounded to nearest even. */
PAIRS_EMULATED void pairs_dot(vec *sum, pairs w, pairs x)
{
    for (int i = 0; i < VEC_WIDTH; i++) {
        float upper =
            pairs_emulated_step(pairs_emulated_flush(sum->at[i]), w.at[i] >> 16, x.at[i] >> 16);
        sum->at[i] = pairs_emulated_step(upper, w.at[i], x.at[i]);
    }
}

#endif
