/* encode.c - turns text into token ids: added tokens, normalisation, cutting into words, then the
 * model. */
#include "base/text/parts.h"
#include "base/text/utf8.h"

#include <string.h>

/* The arguments of one call of tec_tokenizer_encode. */
struct encoding {
    const struct tec_tokenizer *t;
    bool literal;
    struct tec_ids *ids;
    struct tec_arena *scratch;
    struct tec_error *err;
};

static enum tec_status encode_word(struct encoding *e, struct tec_text_span word)
{
    const struct tec_tokenizer *t = e->t;
    switch (t->model) {
    case TEC_MODEL_BPE:
        return tec_bpe_encode(&t->bpe, word, e->ids, e->scratch, e->err);
    case TEC_MODEL_UNIGRAM:
        return tec_unigram_encode(&t->unigram, word, e->ids, e->scratch, e->err);
    case TEC_MODEL_WORDPIECE:
        tec_wordpiece_encode(&t->wordpiece, word, e->ids);
        return TEC_OK;
    }
    return tec_fail(e->err, TEC_INVALID, "tokenizer of an unknown kind");
}

static enum tec_status encode_words(struct encoding *e, struct tec_pretoken text)
{
    struct tec_pretokens words;
    TEC_TRY(tec_pretokenise(e->t->split, e->t->n_split, text, &words, e->scratch, e->err));
    for (size_t i = 0; i < words.n; i++)
        TEC_TRY(encode_word(e, words.at[i].text));
    return TEC_OK;
}

/* Encode the text between tokens that are matched as they are written: normalise it, then cut out
 * the tokens that are matched after normalisation. */
static enum tec_status encode_gap(struct encoding *e, struct tec_pretoken gap)
{
    const struct tec_tokenizer *t = e->t;
    struct tec_text_span text;
    struct tec_cut cut;
    TEC_TRY(tec_normalise(t->normal, t->n_normal, gap.text, &text, e->scratch, e->err));
    struct tec_cutter cutter = {
        .added = t->added, .keys = &t->normalized, .literal = e->literal, .text = text};
    while (tec_cutter_next(&cutter, &cut)) {
        struct tec_pretoken word = {cut.text, gap.first && cut.text.at == text.at};
        if (cut.id >= 0)
            tec_ids_add(e->ids, cut.id);
        else
            TEC_TRY(encode_words(e, word));
    }
    return TEC_OK;
}

static enum tec_status encode_text(struct encoding *e, struct tec_text_span text)
{
    const struct tec_tokenizer *t = e->t;
    struct tec_cut cut;
    struct tec_cutter cutter = {
        .added = t->added, .keys = &t->raw, .literal = e->literal, .text = text};
    while (tec_cutter_next(&cutter, &cut)) {
        struct tec_pretoken gap = {cut.text, cut.text.at == text.at};
        if (cut.id >= 0) {
            tec_ids_add(e->ids, cut.id);
            continue;
        }
        struct tec_arena_mark mark = tec_arena_mark(e->scratch);
        enum tec_status status = encode_gap(e, gap);
        tec_arena_rewind(e->scratch, mark);
        TEC_TRY(status);
    }
    return TEC_OK;
}

#define LONGEST_TEXT ((size_t)1 << 28) /* bytes; keeps every count below 2^31 */

enum tec_status tec_tokenizer_encode(const struct tec_tokenizer *t, const char *text, size_t n,
                                     struct tec_encode how, int *ids, size_t capacity,
                                     size_t *count, struct tec_arena *scratch,
                                     struct tec_error *err)
{
    if (!t || !count || !scratch || (!text && n) || (!ids && capacity))
        return tec_fail(err, TEC_INVALID, "encode: an argument is NULL");
    size_t bad = n > LONGEST_TEXT ? n : tec_utf8_check(text, n);
    if (n > LONGEST_TEXT)
        return tec_fail(err, TEC_INVALID, "text of %zu bytes, at most %zu", n, LONGEST_TEXT);
    if (bad < n)
        return tec_fail(err, TEC_MALFORMED, "text is not UTF-8: byte 0x%02X at position %zu",
                        (unsigned char)text[bad], bad);
    struct tec_ids out = {ids, 0, capacity};
    struct encoding e = {t, how.literal, &out, scratch, err};
    for (int i = 0; how.special && i < t->n_before; i++)
        tec_ids_add(&out, t->before[i]);
    TEC_TRY(encode_text(&e, (struct tec_text_span){text, n}));
    for (int i = 0; how.special && i < t->n_after; i++)
        tec_ids_add(&out, t->after[i]);
    *count = out.n;
    return TEC_OK;
}
