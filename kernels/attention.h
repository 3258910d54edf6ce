/* attention.h - what attention and its mass have in common on every tier: key blocks, spans,
 * scratch. */
#ifndef TEC_KERNELS_ATTENTION_H
#define TEC_KERNELS_ATTENTION_H

#include "kernels/args.h"

#include <stddef.h>

/* Keys are cut at multiples of this in logical key order; the most queries of a tile, for which a
 * block of keys is prepared once. */
#define TEC_ATTENTION_KEYS 64
#define TEC_ATTENTION_TILE 128

/* The most elements of a head whose attention may be in whole numbers, and the most queries of its
 * tile. It has twice as many as others: a query takes less memory, and a block of keys and values
 * longer to prepare. */
#define TEC_ATTENTION_WHOLE_DIM 128
#define TEC_ATTENTION_WHOLE_TILE 256

/* The fewest rows of a picture for which whole numbers take less time: who builds a graph asks. */
#define TEC_ATTENTION_WHOLE_ROWS 64

/* head_dim rounded up to whole vectors of every tier. */
static inline int tec_attention_width(int head_dim)
{
    return (head_dim + 15) / 16 * 16;
}

/* The first key that a row with `visible` keys sees. */
static inline int tec_attention_first(const struct tec_attention_args *a, int visible)
{
    return a->window > 0 && visible > a->window ? visible - a->window : 0;
}

/* The most ranges that attention_mass takes: a query's sums fit where attention has values and
 * accumulators. */
static inline int tec_mass_ranges(int head_dim)
{
    return 2 * TEC_ATTENTION_KEYS * tec_attention_width(head_dim);
}

/* The attention whose weights attention_mass adds up: what scores and spans are read from. */
static inline struct tec_attention_args tec_mass_attention(const struct tec_mass_args *a)
{
    return (struct tec_attention_args){
        .q = a->q,
        .k = a->k,
        .out = a->out,
        .scratch = a->scratch,
        .row_seq = a->row_seq,
        .visible = a->visible,
        .seqs = a->seqs,
        .spans = a->spans,
        .rows = a->rows,
        .max_rows = a->max_rows,
        .ldq = a->ldq,
        .ldo = a->ldo,
        .heads = a->heads,
        .kv_heads = a->kv_heads,
        .head_dim = a->head_dim,
        .window = a->window,
        .scale = a->scale,
        .cap = a->cap,
    };
}

/* The bias of row r on the score of key `key` for head h, counted from its sequence's first key. */
static inline float tec_attention_bias(const struct tec_attention_args *a, int r, int h, int key)
{
    int d = key - a->pos[r];
    d = d < -a->reach ? -a->reach : d > a->reach ? a->reach : d;
    return a->bias[(size_t)h * (2 * (size_t)a->reach + 1) + (size_t)(d + a->reach)];
}

/* The position of a walk over the spans of one sequence. */
struct tec_attention_walk {
    const struct tec_span *span, *end;
    int used; /* keys of *span already taken */
};

static inline struct tec_attention_walk tec_attention_walk_init(const struct tec_attention_args *a,
                                                                int seq)
{
    const struct tec_seq *s = &a->seqs[seq];
    return (struct tec_attention_walk){a->spans + s->first, a->spans + s->first + s->spans, 0};
}

/* The slots of the next keys in logical order, at most n; returns how many there were. */
static inline int tec_attention_walk_next(struct tec_attention_walk *walk, int n, int *slots)
{
    int got = 0;
    while (got < n && walk->span < walk->end) {
        if (walk->used >= walk->span->length) {
            walk->span++;
            walk->used = 0;
            continue;
        }
        slots[got++] = walk->span->slot + walk->used++;
    }
    return got;
}

#endif
