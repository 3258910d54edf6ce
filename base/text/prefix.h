/* prefix.h - which texts of a set start here: a sorted list, narrowed byte by byte. */
#ifndef TEC_BASE_TEXT_PREFIX_H
#define TEC_BASE_TEXT_PREFIX_H

#include "base/arena.h"
#include "base/text/bytes.h"

#include <stdbool.h>
#include <stddef.h>

struct tec_prefix_key {
    struct tec_text_span text; /* borrowed */
    int value;
};

/* Immutable after init. A step costs the logarithm of the number of keys at most. */
struct tec_prefix {
    struct tec_prefix_key *keys; /* in order of bytes; equal texts in the order given */
    int n;
    int first[257]; /* keys that start with byte b are first[b] .. first[b + 1] - 1 */
};

/* Sorts `keys` in place (they stay the caller's). false: no memory for the sort. */
bool tec_trie_init(struct tec_prefix *p, struct tec_prefix_key *keys, int n,
                   struct tec_arena *scratch);

/* The keys that agree with the bytes walked so far. */
struct tec_walk {
    int low, high;
    size_t depth;
};

struct tec_walk tec_trie_start(const struct tec_prefix *p);

/* Walk one byte on; false when no key goes on so. */
bool tec_trie_step(const struct tec_prefix *p, struct tec_walk *w, char byte);

/* The key that ends exactly here; NULL when there is none. */
const struct tec_prefix_key *tec_trie_here(const struct tec_prefix *p, const struct tec_walk *w);

/* The longest key that the n bytes at s start with; NULL when there is none. */
const struct tec_prefix_key *tec_trie_longest(const struct tec_prefix *p, struct tec_walk from,
                                              const char *s, size_t n);

#endif
