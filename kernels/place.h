/* place.h - which tokens of which places a lane takes, alike on every tier of the CPU. */
#ifndef TEC_KERNELS_PLACE_H
#define TEC_KERNELS_PLACE_H

#include "kernels/kernels.h"

/* A walk over the places: tokens first .. last - 1 of *place are this lane's, perhaps none. */
struct tec_place_walk {
    const struct tec_place *place;
    int first, last;
    struct tec_range own; /* the lane's share of all tokens, place by place */
    int count, next, before;
};

static inline int tec_place_tokens(const struct tec_place_args *a, int i)
{
    return tec_live(&a->places[i].tokens, a->max_tokens);
}

static inline struct tec_place_walk tec_place_begin(const struct tec_place_args *a,
                                                    struct tec_part part)
{
    struct tec_place_walk w = {.count = tec_live(a->count, a->max_places)};
    int tokens = 0;
    for (int i = 0; i < w.count; i++)
        tokens += tec_place_tokens(a, i);
    w.own = tec_share(part, tokens, 1);
    return w;
}

/* The next place; false: that was all. */
static inline bool tec_place_next(const struct tec_place_args *a, struct tec_place_walk *w)
{
    if (w->next >= w->count || w->before >= w->own.last)
        return false;
    int tokens = tec_place_tokens(a, w->next);
    w->place = &a->places[w->next++];
    w->first = w->own.first > w->before ? w->own.first - w->before : 0;
    w->last = w->own.last - w->before < tokens ? w->own.last - w->before : tokens;
    w->before += tokens;
    return true;
}

/* The offset of the row of token or slot t, in elements. */
static inline size_t tec_place_at(const struct tec_place_args *a, int t)
{
    return (size_t)t * (size_t)a->kv_heads * (size_t)a->head_dim;
}

#endif
