/* modelled_start.h - one start of a kernel, as the files of its model share it. */
#ifndef TEC_TOOLS_MEASURE_MODELLED_START_H
#define TEC_TOOLS_MEASURE_MODELLED_START_H

#include "tools/measure/modelled.h"

static const double MEMORY_SHARE = 0.93; /* of a copy's bandwidth, reached by streams of weights */
static const double L2_SHARE = 0.6;      /* of the L2's, reached by kernels of rows */
static const double MMA_SHARE = 0.75;    /* of a multiprocessor's rate, in a step */
static const double FEW_AROUND = 1.6;    /* us around the steps of few rows by warp groups */

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

/* A thread block of a product of few rows by warp groups, with so many beside one another on a
 * multiprocessor; and what still stands behind the last of its bytes. */
double tec_few_us(const struct start *s, int beside, int steps);
double tec_few_behind_us(const struct start *s);

#endif
