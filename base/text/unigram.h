/* unigram.h - the likeliest way to cut a word into pieces (Kudo 2018), by dynamic programming. */
#ifndef TEC_BASE_TEXT_UNIGRAM_H
#define TEC_BASE_TEXT_UNIGRAM_H

#include "base/error.h"
#include "base/text/ids.h"
#include "base/text/prefix.h"
#include "base/text/vocab.h"

/* Immutable after loading; everything is borrowed from the tokenizer's arena. */
struct tec_unigram {
    const struct tec_vocab *vocab;
    struct tec_prefix pieces; /* value = entry */
    bool single;              /* sums are kept in float, as tokenizer.model is run; else double */
    double lowest;            /* score of a normal piece */
    bool byte_fallback;
    int unk; /* -1: text with an unknown character cannot be encoded */
    int byte_id[256];
};

/* Encode one word of valid UTF-8. Runs of unknown characters are one unknown. O(n) for pieces of
 * bounded length. */
enum tec_status tec_unigram_encode(const struct tec_unigram *u, struct tec_text_span word,
                                   struct tec_ids *ids, struct tec_arena *scratch,
                                   struct tec_error *err);

#endif
