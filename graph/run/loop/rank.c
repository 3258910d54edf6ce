/* rank.c - texts in the order of how likely they are. */
#include "graph/run/loop/rank.h"

#include <math.h>
#include <stdlib.h>

/* How many tokens the sum of a text has. */
static int length(const struct tec_decoder *d, int text)
{
    return d->tree->texts[text].n + d->end;
}

static int by_likelihood(const void *a, const void *b)
{
    const struct tec_ranked *x = a, *y = b;
    double p = isnan(x->likely) ? -HUGE_VAL : x->likely;
    double q = isnan(y->likely) ? -HUGE_VAL : y->likely;
    if (isnan(x->likely) != isnan(y->likely))
        return isnan(x->likely) ? 1 : -1;
    return p != q ? (p < q ? 1 : -1) : x->index - y->index;
}

void tec_rank(const struct tec_decoder *d, const float *likely, struct tec_ranked *out,
              double *scratch)
{
    int n = d->tree->n_texts;
    tec_token_tree_sum(d->tree, likely, scratch, scratch + n);
    for (int i = 0; i < n; i++)
        out[i] = (struct tec_ranked){i, d->mean ? scratch[i] / length(d, i) : scratch[i]};
    qsort(out, (size_t)n, sizeof *out, by_likelihood);
}

bool tec_rank_memory(struct tec_loop *l)
{
    int texts = 0, places = 0;
    size_t request_slots = (size_t)l->request_slots + 1;
    for (int i = 0; i < l->o.n_decoders; i++) {
        const struct tec_token_tree *t = l->o.decoders[i].tree;
        texts = t && t->n_texts > texts ? t->n_texts : texts;
        places = t && t->n_nodes > places ? t->n_nodes : places;
    }
    for (int m = 0; m < l->o.n_chains; m++)
        if (l->chains[m].plan->spec.trees.entries > l->entries)
            l->entries = l->chains[m].plan->spec.trees.entries;
    l->likely = TEC_NEW(&l->arena, request_slots * (size_t)l->entries + 1, float);
    l->sums = TEC_NEW(&l->arena, (size_t)texts + (size_t)places + 1, double);
    bool ok = l->likely && l->sums;
    for (int i = 0; ok && texts > 0 && i < l->n_texts; i++) {
        l->texts[i].ranked = TEC_NEW(&l->arena, (size_t)texts, struct tec_ranked);
        ok = l->texts[i].ranked != NULL;
    }
    return ok;
}
