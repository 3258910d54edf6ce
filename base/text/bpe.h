/* bpe.h - byte-pair encoding: by listed pairs (tokenizer.json) or by piece scores
 * (tokenizer.model).
 *
 * Both repeat: of all adjacent pairs that may merge, take the one of lowest rank, leftmost on ties.
 * A heap of candidates makes it O(n log n); candidates that a merge has outdated are skipped. */
#ifndef TEC_BASE_TEXT_BPE_H
#define TEC_BASE_TEXT_BPE_H

#include "base/error.h"
#include "base/text/ids.h"
#include "base/text/prefix.h"
#include "base/text/vocab.h"

struct tec_merge {
    int left, right, result; /* ids */
    uint32_t rank;
};

/* Immutable after loading; everything is borrowed from the tokenizer's arena. */
struct tec_bpe {
    const struct tec_vocab *vocab;
    const uint32_t *ranks;         /* by score: rank of each entry, equal scores equal; else NULL */
    const struct tec_prefix *user; /* by score: user-defined pieces, which never merge; else NULL */
    bool unused;                   /* by score: there are unused pieces, split again at the end */
    struct tec_merge *merges;      /* by pairs: hash table, result -1 = empty */
    size_t mask;
    uint64_t seed;
    bool bytes;         /* symbols are bytes (byte-level), by byte_id */
    bool byte_fallback; /* unknown characters become bytes, by byte_id */
    bool fuse_unk;
    bool ignore_merges; /* a whole word that is a piece is taken as it is */
    int unk;            /* -1: unknown characters are dropped */
    int byte_id[256];   /* -1: no piece */
};

/* Room for `n` merges; then add each, with rank = its place in the list. A pair that comes twice
 * keeps the last rank. */
enum tec_status tec_bpe_merges(struct tec_bpe *bpe, size_t n, uint64_t seed,
                               struct tec_arena *arena, struct tec_error *err);
void tec_bpe_add(struct tec_bpe *bpe, struct tec_merge merge);

/* Ranks of the entries of `vocab` by descending score. NULL: no memory. */
uint32_t *tec_bpe_ranks(const struct tec_vocab *vocab, struct tec_arena *arena);

/* Encode one word of valid UTF-8. */
enum tec_status tec_bpe_encode(const struct tec_bpe *bpe, struct tec_text_span word,
                               struct tec_ids *ids, struct tec_arena *scratch,
                               struct tec_error *err);

#endif
