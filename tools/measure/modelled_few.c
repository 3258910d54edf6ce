/* modelled_few.c - the model of products of few rows by warp groups (kernels/cuda/gemm_groups.cuh):
 * their steps as an H100 measured them, and as they are today. */
#include "tools/measure/modelled_start.h"

/* What a block waited for in a step, and what each group of 8 rows adds around its steps: fitted.
 */
static const double FEW_STEP = 0.95, FEW_FINISH = 0.54;

/* Today, which nobody measured: clocks of a step in the warps that make terms, around it, for each
 * eight of a thread, of rows behind a norm too; and in the warp that asks for weights. Those are
 * stalls in SASS, with 100 for latencies of shared memory as a guess. Of a block's stages two are
 * not on their way: one is converted, one multiplied. */
static const double MAKE_AROUND = 200, MAKE_EIGHT = 37, MAKE_NORMED = 64, ASK_WEIGHTS = 400;
enum { MAKING = 64, AT_WORK = 2 };

/* A step: a latency that it shares with the steps that are on their way with it, the instructions
 * of the warps that bring, the multiplies, or its rows, which every block of a wave reads from the
 * L2. Its weights are among the bytes of the whole product. */
static double step_us(const struct start *s, int beside)
{
    const struct gemm_tile *t = tile_of(s);
    double held = (double)beside * s->chip->processors, all = (double)s->time.busy;
    double rows = (all < held ? all : held) * 8 * row_groups(s) * t->k * 4;
    double eights = (double)t->rows * t->k / 8 / MAKING;
    double make = MAKE_AROUND + eights * (s->grid->norm ? MAKE_NORMED : MAKE_EIGHT);
    double flop = 2.0 * t->columns * t->rows * t->k * t->terms * beside;
    double bring = larger(make, ASK_WEIGHTS) * beside / s->chip->mhz;
    double step = larger(FEW_STEP / (t->stages - AT_WORK) * s->slower, bring);
    step = larger(step, rows / (s->chip->l2_rate * 1e3 * L2_SHARE));
    return larger(step, multiply_us(s, flop, s->peak->bf16, MMA_SHARE));
}

static double finish_us(const struct start *s)
{
    return FEW_FINISH * row_groups(s) * s->slower;
}

double tec_few_us(const struct start *s, int beside, int steps)
{
    double step = s->changes->as_measured ? FEW_STEP * s->slower : step_us(s, beside);
    return FEW_AROUND * s->slower + finish_us(s) + step * steps;
}

double tec_few_behind_us(const struct start *s)
{
    return s->changes->as_measured ? 0.0 : finish_us(s);
}
