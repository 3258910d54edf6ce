/* repetition_penalty.c - the reference repetition_penalty kernel: makes tokens less likely that
 * were there before.
 *
 * The set of tokens of a row is a bit mask; words of it without a bit are skipped. */
#include "kernels/ref/ref.h"

void tec_repetition_penalty_ref(const struct tec_repetition_penalty_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        float *x = a->x + (size_t)r * (size_t)a->ld;
        uint32_t *used = a->used + (size_t)r * (size_t)a->words;
        int token = a->token[r];
        if (token >= 0 && token < a->cols)
            used[token / 32] |= UINT32_C(1) << (token % 32);
        for (int c = 0; c < a->cols; c++) {
            if (c % 32 == 0 && !used[c / 32])
                c += 31;
            else if (used[c / 32] >> (c % 32) & 1U)
                x[c] = x[c] < 0.0F ? x[c] * a->penalty : x[c] / a->penalty;
        }
    }
}
