/* parts.h - what a tokenizer is made of; for the files of this folder only. */
#ifndef TEC_BASE_TEXT_PARTS_H
#define TEC_BASE_TEXT_PARTS_H

#include "base/text/added.h"
#include "base/text/bpe.h"
#include "base/text/normalise.h"
#include "base/text/pretokenise.h"
#include "base/text/tokenizer.h"
#include "base/text/unigram.h"
#include "base/text/wordpiece.h"

enum tec_model_kind { TEC_MODEL_BPE, TEC_MODEL_UNIGRAM, TEC_MODEL_WORDPIECE };

enum tec_decode_kind {
    TEC_DECODE_JOIN,      /* pieces after `from` -> `to`, and bytes from byte pieces */
    TEC_DECODE_BYTES,     /* the printable form of byte-level pieces back to bytes */
    TEC_DECODE_WORDPIECE, /* a space before each piece without `from` */
    TEC_DECODE_METASPACE, /* `from` is a space, but not in the first piece (if `strip`) */
    TEC_DECODE_SPACED,    /* no decoder: a space between pieces */
    TEC_DECODE_MODEL,     /* as tokenizer.model: control pieces hidden, unknown shown as `to` */
};

struct tec_decode {
    enum tec_decode_kind kind;
    struct tec_text_span from, to;
    bool byte_fallback; /* JOIN: "<0x41>" is a byte */
    bool strip;         /* JOIN: drop a leading space. METASPACE: see there. MODEL: drop a leading
                           space mark of the first piece */
    bool strip_all;     /* MODEL: of all pieces until something shows */
    bool cleanup;       /* WORDPIECE: no space before punctuation, and the like */
};

#define TEC_TEMPLATE_IDS 16 /* most ids before or after the text */

struct tec_tokenizer {
    struct tec_heap *heap;
    struct tec_arena arena; /* owns everything below */
    const char *kind;
    uint64_t identity;
    struct tec_vocab vocab;
    int bos, eos, pad, unk;

    struct tec_added *added;
    int n_added;
    struct tec_prefix raw, normalized; /* keys of `added`, by where they are matched */

    struct tec_normal normal[TEC_NORMAL_STEPS];
    int n_normal;
    struct tec_split split[TEC_SPLIT_STEPS];
    int n_split;

    enum tec_model_kind model;
    struct tec_bpe bpe;
    struct tec_unigram unigram;
    struct tec_wordpiece wordpiece;
    struct tec_prefix user; /* tokenizer.model: user-defined pieces */

    int before[TEC_TEMPLATE_IDS], after[TEC_TEMPLATE_IDS]; /* the template around the text */
    int n_before, n_after;
    struct tec_decode decode;
};

/* Fill `t`, which is zero but for heap, arena and the four special ids (-1). `seed` is a hash of
 * the bytes. On failure the caller closes it. */
enum tec_status tec_tokenizer_read_model(struct tec_tokenizer *t, const void *bytes, size_t n,
                                         uint64_t seed, struct tec_error *err);
enum tec_status tec_tokenizer_read_json(struct tec_tokenizer *t, const void *bytes, size_t n,
                                        uint64_t seed, struct tec_error *err);

struct json_t;

/* Fill the tokenizer from a parsed tokenizer.json. */
enum tec_status tec_tokenizer_read_root(struct tec_tokenizer *t, struct json_t *root, uint64_t seed,
                                        struct tec_error *err);

/* The byte that a character of byte-level pieces stands for, -1 when it stands for none; and the
 * character of a byte. 0x21-7E, A1-AC and AE-FF stand for themselves, the other 68 bytes are U+0100
 * upwards in order. */
int tec_tokenizer_byte(uint32_t code);
uint32_t tec_tokenizer_printable(int byte);

#endif
