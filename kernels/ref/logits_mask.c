/* logits_mask.c - the reference logits_mask kernel: sets logits that may not follow a row's place
 * to -infinity. */
#include "kernels/ref/ref.h"

#include <float.h>
#include <math.h>

/* Restrict one row to the entries of its place. Entries ascend, so every id between two of them is
 * excluded. */
static void logits_mask(const struct tec_logits_mask_args *a, float *x, int place)
{
    const struct tec_trie *p = &a->trie;
    int next = 0;
    for (int e = p->first[place]; e < p->first[place + 1]; e++) {
        int id = p->id[e];
        if (id < next || id >= a->cols)
            continue;
        for (; next < id; next++)
            x[next] = -INFINITY;
        x[id] = x[id] > -INFINITY ? x[id] : -FLT_MAX;
        next = id + 1;
    }
    for (; next < a->cols; next++)
        x[next] = -INFINITY;
}

void tec_logits_mask_ref(const struct tec_logits_mask_args *a, struct tec_part part)
{
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++) {
        int place = a->place[r];
        if (place >= 0 && place < a->trie.n && a->trie.first[place] < a->trie.first[place + 1])
            logits_mask(a, a->x + (size_t)r * (size_t)a->ld, place);
    }
}
