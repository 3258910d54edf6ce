/* prefix.c - finds the keys that a text starts with: a sorted list that is narrowed byte by byte.
 *
 * A sorted array needs no nodes as a trie does. The first byte is looked up in a table of 256
 * ranges, and each later byte takes two binary searches within the range that is left. */
#include "base/text/prefix.h"

#include <string.h>

static bool is_before(const struct tec_prefix_key *a, const struct tec_prefix_key *b)
{
    size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;
    int order = memcmp(a->text.at, b->text.at, n);
    return order < 0 || (order == 0 && a->text.n < b->text.n);
}

static void merge(struct tec_prefix_key *out, const struct tec_prefix_key *a, size_t n_a,
                  const struct tec_prefix_key *b, size_t n_b)
{
    while (n_a && n_b) {
        bool second = is_before(b, a);
        *out++ = second ? *b++ : *a++;
        *(second ? &n_b : &n_a) -= 1;
    }
    memcpy(out, n_a ? a : b, (n_a + n_b) * sizeof *out);
}

/* Bottom-up merge sort: stable, O(n log n) also in the worst case, and without the callback of
 * qsort. */
static void sort(struct tec_prefix_key *keys, struct tec_prefix_key *copy, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t middle = at + width < n ? at + width : n;
            size_t end = at + 2 * width < n ? at + 2 * width : n;
            merge(copy + at, keys + at, middle - at, keys + middle, end - middle);
        }
        memcpy(keys, copy, n * sizeof *keys);
    }
}

bool tec_trie_init(struct tec_prefix *p, struct tec_prefix_key *keys, int n,
                   struct tec_arena *scratch)
{
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    struct tec_prefix_key *copy = TEC_NEW(scratch, (size_t)n, struct tec_prefix_key);
    if (!copy)
        return false;
    sort(keys, copy, (size_t)n);
    tec_arena_rewind(scratch, mark);
    *p = (struct tec_prefix){.keys = keys, .n = n};
    for (int i = 0; i < n; i++)
        p->first[(unsigned char)keys[i].text.at[0] + 1]++;
    for (int b = 1; b < 257; b++)
        p->first[b] += p->first[b - 1];
    return true;
}

struct tec_walk tec_trie_start(const struct tec_prefix *p)
{
    return (struct tec_walk){0, p->n, 0};
}

/* The byte of a key at a depth, or -1 behind its end, so that shorter keys come first. */
static int byte_at(const struct tec_prefix *p, int key, size_t depth)
{
    const struct tec_text_span *text = &p->keys[key].text;
    return depth < text->n ? (unsigned char)text->at[depth] : -1;
}

/* The first key of low .. high - 1 whose byte at this depth is not below `byte`. */
static int bound(const struct tec_prefix *p, int low, int high, size_t depth, int byte)
{
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (byte_at(p, middle, depth) < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tec_trie_step(const struct tec_prefix *p, struct tec_walk *w, char byte)
{
    int b = (unsigned char)byte;
    if (w->depth == 0) {
        w->low = p->first[b];
        w->high = p->first[b + 1];
    } else {
        w->low = bound(p, w->low, w->high, w->depth, b);
        w->high = bound(p, w->low, w->high, w->depth, b + 1);
    }
    w->depth++;
    return w->low < w->high;
}

const struct tec_prefix_key *tec_trie_here(const struct tec_prefix *p, const struct tec_walk *w)
{
    bool ends = w->low < w->high && p->keys[w->low].text.n == w->depth;
    return ends ? &p->keys[w->low] : NULL;
}

const struct tec_prefix_key *tec_trie_longest(const struct tec_prefix *p, struct tec_walk from,
                                              const char *s, size_t n)
{
    const struct tec_prefix_key *longest = NULL;
    for (size_t i = 0; i < n && tec_trie_step(p, &from, s[i]); i++) {
        const struct tec_prefix_key *here = tec_trie_here(p, &from);
        longest = here ? here : longest;
    }
    return longest;
}
