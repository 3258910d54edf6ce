/* wordpiece.h - longest piece first, from the left; pieces inside a word have a prefix. */
#ifndef TEC_BASE_TEXT_WORDPIECE_H
#define TEC_BASE_TEXT_WORDPIECE_H

#include "base/error.h"
#include "base/text/ids.h"
#include "base/text/prefix.h"
#include "base/text/vocab.h"

/* Immutable after loading; everything is borrowed from the tokenizer's arena. */
struct tec_wordpiece {
    struct tec_prefix pieces;    /* value = id */
    struct tec_text_span inside; /* "##" */
    int longest;                 /* characters of a word; longer ones are unknown */
    int unk;
};

/* Encode one word of valid UTF-8: its pieces, or unk when some part has none. */
void tec_wordpiece_encode(const struct tec_wordpiece *w, struct tec_text_span word,
                          struct tec_ids *ids);

#endif
