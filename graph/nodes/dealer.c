/* dealer.c - arrays of a frame table, dealt one after the other. */
#include "graph/nodes/dealer.h"

void *tec_deal(struct tec_dealer *d, size_t n, size_t size)
{
    void *p = d->base ? d->base + d->used : NULL;
    d->used += (n * size + TEC_DEAL_ALIGN - 1) / TEC_DEAL_ALIGN * TEC_DEAL_ALIGN;
    return p;
}

int *tec_deal_ints(struct tec_dealer *d, int n)
{
    return tec_deal(d, (size_t)n, sizeof(int));
}

void tec_deal_rows(struct tec_dealer *d, struct tec_rows *rows, int max, int seqs, int spans)
{
    rows->max = max;
    rows->count = tec_deal_ints(d, 1);
    rows->pos = tec_deal_ints(d, max);
    rows->slot = tec_deal_ints(d, max);
    rows->seq = tec_deal_ints(d, max);
    rows->visible = tec_deal_ints(d, max);
    rows->seqs = tec_deal(d, (size_t)seqs, sizeof(struct tec_seq));
    rows->spans = tec_deal(d, (size_t)spans, sizeof(struct tec_span));
}
