/* charsmap.h - the precompiled normalisation map of SentencePiece: longest rule to its text. */
#ifndef TEC_BASE_TEXT_CHARSMAP_H
#define TEC_BASE_TEXT_CHARSMAP_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/bytes.h"

#include <stdint.h>

/* A double-array trie (darts-clone) and the texts it points at. n_units is 0 for the identity. */
struct tec_charsmap {
    const unsigned char *units; /* little-endian uint32 each, not aligned */
    size_t n_units;
    const char *texts; /* NUL-terminated UTF-8, one after the other */
    size_t n_texts;
};

#define TEC_CHARSMAP_TEXT 255 /* longest replacement, bytes */

/* `blob` (borrowed): uint32 size of the trie, the trie, the texts. Empty is the identity. */
enum tec_status tec_charsmap_open(struct tec_charsmap *map, const void *blob, size_t size,
                                  struct tec_error *err);

/* Rules that the n bytes at s start with: length of the longest (0 = none) and its text. */
size_t tec_charsmap_longest(const struct tec_charsmap *map, const char *s, size_t n,
                            struct tec_text_span *text);

/* The length and the text of the shortest such rule. */
size_t tec_charsmap_shortest(const struct tec_charsmap *map, const char *s, size_t n,
                             struct tec_text_span *text);

#endif
