/* modelled_start.h - one start of a kernel for the model of times (modelled.h), and what its parts
 * have in common: private to them. */
#ifndef TEC_TOOLS_MEASURE_MODELLED_START_H
#define TEC_TOOLS_MEASURE_MODELLED_START_H

#include "tools/measure/modelled.h"

/* Constants of several parts: the share of a copy's bandwidth that streams of weights reach; of the
 * L2's rate that kernels of rows do; of a multiprocessor's bf16 rate in steps of `mma`; what is
 * around the steps of few rows by warp groups, and a wait for what a row has, us. */
static const double MEMORY_SHARE = 0.93, L2_SHARE = 0.6, MMA_SHARE = 0.75;
static const double FEW_AROUND = 1.6, ROW_WAIT = 0.7;

struct start {
    const struct tec_peak *peak;
    const struct tec_chip *chip;
    const struct tec_grid *grid;
    const struct tec_grid_work *work;
    const struct tec_changes *changes;
    double slower; /* than the H100's clock */
    struct tec_grid_time time;
};

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double multiply_us(const struct start *s, double flop, double tflops, double share)
{
    return flop / (tflops * 1e6 / s->chip->processors * share);
}

static inline const struct gemm_tile *tile_of(const struct start *s)
{
    return &gemm_tiles[s->grid->choice.tile];
}

/* Groups of 8 live rows in a full tile. */
static inline double row_groups(const struct start *s)
{
    int64_t rows = s->work->rows < tile_of(s)->rows ? s->work->rows : tile_of(s)->rows;
    int64_t groups = (rows + 7) / 8;
    return (double)groups;
}

/* modelled_start.c. The part `what` of a time, which names the bound if it is the largest yet. */
double tec_start_part(struct start *s, double us, const char *what, double *most);

/* Waves of busy blocks, each as long as one(blocks beside each other on a multiprocessor); the last
 * one has as many of those as are left. */
double tec_start_waves(struct start *s, double (*one)(const struct start *s, int beside));

/* Bytes of weights come from memory; activations and keys from the L2 where they fit in half of
 * it. */
double tec_start_memory_us(const struct start *s, const struct tec_cost *c);

/* A thread block of a product of few rows by warp groups, with so many beside one another on a
 * multiprocessor; and what still stands behind the last of its bytes (modelled_few.c). */
double tec_few_us(const struct start *s, int beside, int steps);
double tec_few_behind_us(const struct start *s);

/* Times without their start: attention in tiles, of wide heads, and its sums
 * (modelled_attention.c). */
double tec_start_attention_us(struct start *s);
double tec_start_wide_us(struct start *s);
double tec_start_mass_us(struct start *s);

#endif
