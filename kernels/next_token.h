/* next_token.h - the bookkeeping of one decode step, shared by every tier's next_token. */
#ifndef TEC_KERNELS_NEXT_TOKEN_H
#define TEC_KERNELS_NEXT_TOKEN_H

#include "kernels/kernels.h"

static inline void tec_next_token_input(const struct tec_next_token_args *a, int r, int id)
{
    a->token[r] = id;
    a->pos[r]++;
    a->visible[r]++;
    a->slot[r] = a->tail[r] + a->visible[r] - 1 - a->prefix[r]; /* positions may have gaps */
}

static inline bool tec_next_token_ends(const struct tec_next_token_args *a, int r, int id)
{
    bool ends = id == a->eos[r];
    for (int i = 0; i < a->n_ends && a->eos[r] >= 0; i++)
        ends |= id == a->ends[i];
    return ends;
}

/* Row r, which appended `id`, goes on in its tree; whether that is at an end. */
static inline bool tec_next_token_leaves(const struct tec_next_token_args *a, int r, int id)
{
    const struct tec_trie *p = &a->trie;
    int at = p->n > 0 ? a->place[r] : -1;
    if (at < 0 || at >= p->n)
        return false;
    int low = p->first[at], end = p->first[at + 1], high = end;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (p->id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= end || p->id[low] != id)
        return true;
    at = a->place[r] = p->next[low];
    return at < 0 || at >= p->n || p->first[at] == p->first[at + 1];
}

/* Row r chose `id`: append it, then either finish the row or make it the next input. */
static inline void tec_next_token_step(const struct tec_next_token_args *a, int r, int id)
{
    if (a->produced[r] < 0 || a->produced[r] >= a->max_tokens) {
        a->done[r] = 1; /* no room: nothing can be appended */
        return;
    }
    a->tokens[(size_t)r * (size_t)a->max_tokens + (size_t)a->produced[r]++] = id;
    bool leaves = tec_next_token_leaves(a, r, id);
    if (--a->left[r] <= 0 || leaves || tec_next_token_ends(a, r, id))
        a->done[r] = 1;
    else
        tec_next_token_input(a, r, id);
}

/* Whether the next input of row r is given; it is taken then. */
static inline bool tec_next_token_forced(const struct tec_next_token_args *a, int r)
{
    if (a->max_forced <= 0 || a->waiting[r] <= 0 || a->waiting[r] > a->max_forced)
        return false;
    size_t at = (size_t)r * (size_t)a->max_forced + (size_t)(a->max_forced - a->waiting[r]);
    a->waiting[r]--;
    tec_next_token_input(a, r, a->forced[at]);
    return true;
}

/* The whole kernel around an argmax(logits, cols, round) of one row; lane 0 does it. */
static inline void tec_next_token_rows(const struct tec_next_token_args *a, struct tec_part part,
                                       int (*argmax)(const float *row, int cols, int round))
{
    if (part.lane != 0)
        return;
    int rows = tec_live(a->rows, a->max_rows), done = 0;
    for (int r = 0; r < rows; r++) {
        if (!a->done[r] && !tec_next_token_forced(a, r)) {
            a->best[r] = argmax(a->logits + (size_t)r * (size_t)a->ld, a->cols, a->round);
            tec_next_token_step(a, r, a->best[r]);
        }
        done += a->done[r] != 0;
    }
    if (done == rows)
        *a->stop = 1;
}

#endif
