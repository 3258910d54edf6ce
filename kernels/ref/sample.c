/* sample.c - the reference sample kernel: temperature, top_k, top_p and Gumbel noise on rows of
 * logits.
 *
 * The thresholds of top_k and top_p are found digit by digit (radix selection) instead of by
 * sorting. Counts and weights are integers, so their sums have no order and every lane and tier
 * excludes the same tokens. With the noise added, the argmax of a row is a draw from its
 * softmax. */
#include "kernels/sample.h"
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

/* The state of one row while its draw is prepared. */
struct draw {
    float *x;
    int cols;
    float top;
    uint32_t least; /* tokens with smaller keys are excluded already */
    bool weighed;   /* sums are of weights, else of tokens */
};

static uint64_t weight_of(const struct draw *d, float x)
{
    return d->weighed ? tec_sample_weight(x, d->top) : 1;
}

/* The largest key such that tokens of this key or a larger one sum up to `target`; each pass finds
 * one digit of 8 bits. */
static uint32_t find_key(const struct draw *d, uint64_t target)
{
    uint32_t found = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        uint64_t sums[TEC_SAMPLE_DIGITS] = {0};
        for (int c = 0; c < d->cols; c++) {
            uint32_t key = tec_sample_key(d->x[c]);
            if (key >= d->least && (uint64_t)key >> (shift + 8) == (uint64_t)found >> (shift + 8))
                sums[key >> shift & 255U] += weight_of(d, d->x[c]);
        }
        int digit = TEC_SAMPLE_DIGITS - 1;
        for (; digit > 0 && sums[digit] < target; digit--)
            target -= sums[digit];
        found |= (uint32_t)digit << shift;
    }
    return found;
}

static uint64_t total_of(const struct draw *d)
{
    uint64_t sum = 0;
    for (int c = 0; c < d->cols; c++)
        if (tec_sample_key(d->x[c]) >= d->least)
            sum += weight_of(d, d->x[c]);
    return sum;
}

static void draw(const struct tec_sample_args *a, int r, float *x)
{
    struct draw d = {.x = x, .cols = a->cols, .top = -INFINITY};
    for (int c = 0; c < a->cols; c++) {
        x[c] /= a->temperature[r];
        d.top = x[c] > d.top ? x[c] : d.top;
    }
    if (a->top_k[r] > 0 && a->top_k[r] < a->cols)
        d.least = find_key(&d, (uint64_t)a->top_k[r]);
    if (a->top_p[r] < 1.0F) {
        d.weighed = true;
        uint64_t target = (uint64_t)((double)a->top_p[r] * (double)total_of(&d));
        uint32_t least = find_key(&d, target > 1 ? target : 1);
        d.least = least > d.least ? least : d.least;
    }
    for (int c = 0; c < a->cols; c++)
        x[c] = tec_sample_key(x[c]) < d.least
                   ? -INFINITY
                   : x[c] + tec_sample_noise(a->seed + 2 * (size_t)r, a->pos[r], c);
}

void tec_sample_ref(const struct tec_sample_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        float *x = a->x + (size_t)r * (size_t)a->ld;
        for (int c = 0; a->round && c < a->cols; c++)
            x[c] = tec_bf16_round(x[c]);
        if (a->temperature[r] > 0.0F)
            draw(a, r, x);
    }
}
