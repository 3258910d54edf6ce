/* log_prob.c - the reference log_prob kernel: the logarithm of each row's sum of exponentials, in
 * float64.
 *
 * The largest logit is subtracted first, so that no exponential overflows. kernels/log_prob.h has
 * what all CPU tiers do with the sum. */
#include "kernels/log_prob.h"
#include "kernels/ref/ref.h"

static double logit(const float *row, int c, int round)
{
    return (double)(round ? tec_bf16_round(row[c]) : row[c]);
}

static double log_sum(const float *row, int cols, int round)
{
    double top = -HUGE_VAL, sum = 0.0;
    for (int c = 0; c < cols; c++) { /* not fmax: gcc 12 for aarch64 fails on a loop of it */
        double x = logit(row, c, round);
        top = x > top ? x : top;
    }
    for (int c = 0; c < cols; c++)
        sum += exp(logit(row, c, round) - top);
    return top + log(sum);
}

void tec_log_prob_ref(const struct tec_log_prob_args *a, struct tec_part part)
{
    tec_log_prob_rows(a, part, log_sum);
}
