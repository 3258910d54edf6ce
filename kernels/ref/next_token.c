/* next_token.c - the reference next_token kernel: the argmax of each row of logits.
 *
 * kernels/next_token.h has the bookkeeping around it, which is the same on every CPU tier. */
#include "kernels/next_token.h"
#include "kernels/bf16.h"
#include "kernels/ref/ref.h"

/* The first column of the largest value. A NaN compares false, so it is never chosen while there is
 * a number. */
static int argmax(const float *row, int cols, int round)
{
    int best = -1;
    float most = 0.0F;
    for (int c = 0; c < cols; c++) {
        float x = round ? tec_bf16_round(row[c]) : row[c];
        if (best < 0 ? x == x : x > most) {
            best = c;
            most = x;
        }
    }
    return best < 0 ? 0 : best;
}

void tec_next_token_ref(const struct tec_next_token_args *a, struct tec_part part)
{
    tec_next_token_rows(a, part, argmax);
}
