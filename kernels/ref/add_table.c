/* add_table.c - the reference add_table kernel: adds rows of a table (position embeddings) to
 * rows. */
#include "kernels/ref/ref.h"

void tec_add_table_ref(const struct tec_add_table_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        int row = a->row ? a->row[r] : r % a->period;
        row = row >= 0 && row < a->period ? row : 0;
        const float *table = a->table + (size_t)row * (size_t)a->ldt;
        float *y = a->y + (size_t)r * (size_t)a->ldy;
        for (int c = 0; c < a->cols; c++)
            y[c] += table[c];
    }
}
