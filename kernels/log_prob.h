/* log_prob.h - what a CPU tier's log_prob does around the sum of a row. */
#ifndef TEC_KERNELS_LOG_PROB_H
#define TEC_KERNELS_LOG_PROB_H

#include "kernels/bf16.h"
#include "kernels/kernels.h"

#include <math.h>

/* The kernel around log_sum(row, cols, round) = log(sum_c exp(row[c])). */
static inline void tec_log_prob_rows(const struct tec_log_prob_args *a, struct tec_part part,
                                     double (*log_sum)(const float *row, int cols, int round))
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        const float *x = a->x + (size_t)r * (size_t)a->ld;
        int first = a->first[r] > 0 ? a->first[r] : 0;
        int last = a->first[r + 1] < a->max_entries ? a->first[r + 1] : a->max_entries;
        if (first >= last)
            continue;
        double all = log_sum(x, a->cols, a->round);
        for (int e = first; e < last; e++) {
            int id = a->id[e];
            bool there = id >= 0 && id < a->cols;
            float own = !there ? -INFINITY : a->round ? tec_bf16_round(x[id]) : x[id];
            a->y[e] = there ? (float)((double)own - all) : -INFINITY;
        }
    }
}

#endif
