/* ensemble.h - temporal ensembling: an action is the mean of what the chunks that cover it say, the
 * older ones weighted by exp(-m i), i = 0 for the oldest. A chunk of every frame, one row of which
 * is carried out before the next. After init nothing allocates. */
#ifndef TEC_GRAPH_LIVE_ENSEMBLE_H
#define TEC_GRAPH_LIVE_ENSEMBLE_H

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

struct tec_ensemble {
    int rows, width;
    double *mean;    /* [rows, width] of the rows to come */
    double *weights; /* [rows] exp(-m i) */
    int *count;      /* [rows] chunks that are in a mean; 0 = none */
    int64_t frame;   /* that row 0 is of; -1 = nothing is known */
};

enum tec_status tec_ensemble_init(struct tec_ensemble *e, double m, int rows, int width,
                                  struct tec_arena *arena, struct tec_error *err);

/* The first `n` rows of the chunk of `frame`, [n, width]; frames only go up. `mean` holds what is
 * to be done from that frame on. */
void tec_ensemble_add(struct tec_ensemble *e, int64_t frame, const double *chunk, int n);

/* The next chunk is the first one. */
void tec_ensemble_forget(struct tec_ensemble *e);

#endif
