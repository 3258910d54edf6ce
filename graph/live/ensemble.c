/* ensemble.c - temporal ensembling, kept as running means: a row's mean of c chunks is all that is
 * needed of them when the next one comes. */
#include "graph/live/ensemble.h"

#include <math.h>
#include <string.h>

enum tec_status tec_ensemble_init(struct tec_ensemble *e, double m, int rows, int width,
                                  struct tec_arena *arena, struct tec_error *err)
{
    size_t n = (size_t)rows;
    *e = (struct tec_ensemble){.rows = rows, .width = width, .frame = -1};
    e->mean = TEC_NEW(arena, n * (size_t)width, double);
    e->weights = TEC_NEW(arena, n, double);
    e->count = TEC_NEW(arena, n, int);
    if (!e->mean || !e->weights || !e->count)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to ensemble chunks");
    for (int i = 0; i < rows; i++)
        e->weights[i] = exp(-m * i);
    return TEC_OK;
}

void tec_ensemble_forget(struct tec_ensemble *e)
{
    e->frame = -1;
}

/* Rows of frames that are over leave; nothing is known of those behind the last. */
static void move_on(struct tec_ensemble *e, int64_t frame)
{
    int64_t passed = e->frame < 0 ? e->rows : frame - e->frame;
    int gone = passed < 0 ? 0 : passed > e->rows ? e->rows : (int)passed, left = e->rows - gone;
    size_t row = (size_t)e->width * sizeof *e->mean;
    memmove(e->mean, e->mean + (ptrdiff_t)gone * e->width, (size_t)left * row);
    memmove(e->count, e->count + gone, (size_t)left * sizeof *e->count);
    memset(e->count + left, 0, (size_t)gone * sizeof *e->count);
    e->frame = frame;
}

void tec_ensemble_add(struct tec_ensemble *e, int64_t frame, const double *chunk, int n)
{
    move_on(e, frame);
    for (int r = 0; r < n && r < e->rows; r++) {
        double *mean = e->mean + (ptrdiff_t)r * e->width, before = 0.0;
        int c = e->count[r] < e->rows ? e->count[r] : e->rows - 1;
        for (int i = 0; i < c; i++)
            before += e->weights[i];
        for (int k = 0; k < e->width; k++)
            mean[k] = ((c ? mean[k] * before : 0.0) +
                       chunk[(ptrdiff_t)r * e->width + k] * e->weights[c]) /
                      (before + e->weights[c]);
        e->count[r] = c + 1;
    }
}
