/* penalise.c - the reference penalise kernel: makes tokens less likely that were there before.
 *
 * The set of tokens of a row is a bit mask; words of it without a bit are skipped. */
#include "kernels/ref/ref.h"

void tec_penalise_ref(const struct tec_penalise_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        float *x = a->x + (size_t)r * (size_t)a->ld;
        uint32_t *seen = a->seen + (size_t)r * (size_t)a->words;
        int token = a->token[r];
        if (token >= 0 && token < a->cols)
            seen[token / 32] |= UINT32_C(1) << (token % 32);
        for (int c = 0; c < a->cols; c++) {
            if (c % 32 == 0 && !seen[c / 32])
                c += 31;
            else if (seen[c / 32] >> (c % 32) & 1U)
                x[c] = x[c] < 0.0F ? x[c] * a->penalty : x[c] / a->penalty;
        }
    }
}
