/* decode.c - turns token ids back into text, one id at a time, as streaming of generated text needs
 * it.
 *
 * Bytes of a character that is not complete yet are held until the next ids complete it. */
#include "base/text/parts.h"
#include "base/text/utf8.h"

#include <string.h>

static const char mark[] = "\xE2\x96\x81"; /* U+2581, which stands for a space in pieces */

int tec_tokenizer_byte(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xFF && code != 0xAD))
        return (int)code;
    if (code < 0x100 || code >= 0x144)
        return -1;
    int nth = (int)code - 0x100;
    return nth <= 0x20 ? nth : nth <= 0x42 ? nth - 0x21 + 0x7F : 0xAD;
}

uint32_t tec_tokenizer_printable(int byte)
{
    if (tec_tokenizer_byte((uint32_t)byte) >= 0)
        return (uint32_t)byte;
    return 0x100 + (uint32_t)(byte <= 0x20 ? byte : byte < 0xAD ? byte - 0x7F + 0x21 : 0x43);
}

/* The output of one call: the detokenizer's new state, and as many bytes as fit. */
struct sink {
    struct tec_detokenizer d;
    char *out;
    size_t capacity, n;
};

static void emit(struct sink *s, const char *text, size_t n)
{
    if (s->d.bare) {
        s->d.bare = false;
        if (s->d.t->decode.kind == TEC_DECODE_JOIN && s->d.t->decode.strip && text[0] == ' ')
            return;
    }
    for (size_t i = 0; i < n; i++, s->n++)
        if (s->n < s->capacity)
            s->out[s->n] = text[i];
}

/* Emit U+FFFD for invalid UTF-8: tokenizer.model replaces every bad byte, the other formats every
 * maximal invalid part. */
static void emit_bad(struct sink *s, size_t n)
{
    for (size_t i = s->d.t->decode.kind == TEC_DECODE_MODEL ? n : 1; i > 0; i--)
        emit(s, "\xEF\xBF\xBD", 3);
}

static void drop_held(struct sink *s, size_t n)
{
    s->d.n_held = (unsigned char)(s->d.n_held - n);
    memmove(s->d.held, s->d.held + n, s->d.n_held);
}

static void push_byte(struct sink *s, unsigned char byte)
{
    s->d.held[s->d.n_held++] = byte;
    while (s->d.n_held) {
        enum tec_utf8 what;
        char held[4];
        memcpy(held, s->d.held, 4);
        size_t n = tec_utf8_scan(held, s->d.n_held, &what);
        if (what == TEC_UTF8_CUT)
            return;
        if (what == TEC_UTF8_GOOD)
            emit(s, held, n);
        else
            emit_bad(s, n);
        drop_held(s, n);
    }
}

static void push_text(struct sink *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        push_byte(s, (unsigned char)text[i]);
}

static void push_replaced(struct sink *s, struct tec_text_span text, struct tec_text_span from,
                          struct tec_text_span to)
{
    const char *end = text.at + text.n;
    while (text.at < end) {
        size_t left = (size_t)(end - text.at);
        const char *hit = from.n ? memmem(text.at, left, from.at, from.n) : NULL;
        push_text(s, text.at, hit ? (size_t)(hit - text.at) : left);
        if (!hit)
            return;
        push_text(s, to.at, to.n);
        text.at = hit + from.n;
    }
}

static void decode_join(struct sink *s, const struct tec_vocab_entry *e)
{
    const struct tec_decode *how = &s->d.t->decode;
    int byte = how->byte_fallback ? tec_vocab_byte(e->text.at, e->text.n) : -1;
    if (byte >= 0)
        push_byte(s, (unsigned char)byte);
    else
        push_replaced(s, e->text, how->from, how->to);
}

/* Turn the characters of a byte-level piece back into bytes. A piece with a character outside the
 * alphabet (an added token) is plain text. */
static void decode_bytes(struct sink *s, const struct tec_vocab_entry *e)
{
    size_t bytes;
    bool printable = true;
    for (size_t at = 0; printable && at < e->text.n; at += bytes)
        printable = tec_tokenizer_byte(tec_utf8_get(e->text.at + at, &bytes)) >= 0;
    if (!printable) {
        push_text(s, e->text.at, e->text.n);
        return;
    }
    for (size_t at = 0; at < e->text.n; at += bytes)
        push_byte(s, (unsigned char)tec_tokenizer_byte(tec_utf8_get(e->text.at + at, &bytes)));
}

/* Replace each `from` by `to` in place and return the new length; the new text is never longer. */
static size_t tidy(char *text, size_t n, const char *from, const char *to)
{
    size_t n_from = strlen(from), n_to = strlen(to), out = 0;
    for (size_t at = 0; at < n;) {
        if (n - at >= n_from && memcmp(text + at, from, n_from) == 0) {
            memcpy(text + out, to, n_to);
            out += n_to;
            at += n_from;
        } else {
            text[out++] = text[at++];
        }
    }
    return out;
}

static size_t cleanup(char *text, size_t n)
{
    static const char *const rules[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        n = tidy(text, n, rules[i][0], rules[i][1]);
    return n;
}

static void decode_wordpiece(struct sink *s, const struct tec_vocab_entry *e)
{
    const struct tec_decode *how = &s->d.t->decode;
    char text[TEC_PIECE_BYTES + 1];
    size_t n = 0, skip = 0;
    if (!s->d.first && e->text.n >= how->from.n &&
        memcmp(e->text.at, how->from.at, how->from.n) == 0)
        skip = how->from.n;
    else if (!s->d.first)
        text[n++] = ' ';
    memcpy(text + n, e->text.at + skip, e->text.n - skip);
    n += e->text.n - skip;
    push_text(s, text, how->cleanup ? cleanup(text, n) : n);
}

static void decode_metaspace(struct sink *s, const struct tec_vocab_entry *e)
{
    const struct tec_decode *how = &s->d.t->decode;
    struct tec_text_span space = {" ", s->d.first && how->strip ? 0 : 1};
    push_replaced(s, e->text, how->from, space);
}

/* Follows SentencePieceProcessor::Decode in SentencePiece's sentencepiece_processor.cc. */
static void decode_model(struct sink *s, const struct tec_vocab_entry *e)
{
    const struct tec_decode *how = &s->d.t->decode;
    struct tec_text_span text = e->text;
    if (e->type == TEC_PIECE_CONTROL)
        return;
    if (e->type == TEC_PIECE_BYTE) {
        push_byte(s, (unsigned char)tec_vocab_byte(text.at, text.n));
        return;
    }
    if (e->type == TEC_PIECE_UNKNOWN) {
        push_text(s, how->to.at, how->to.n);
        return;
    }
    /* Here `first` means that no leading mark was dropped yet, `bare` that nothing was emitted yet.
     * Held bytes count as output, because they will be emitted. */
    if (how->strip && s->d.first && s->d.bare && s->d.n_held == 0 && text.n >= 3 &&
        memcmp(text.at, mark, 3) == 0) {
        text = (struct tec_text_span){text.at + 3, text.n - 3};
        s->d.first = how->strip_all;
    }
    push_replaced(s, text, (struct tec_text_span){mark, 3}, (struct tec_text_span){" ", 1});
}

static void decode_one(struct sink *s, const struct tec_vocab_entry *e)
{
    switch (s->d.t->decode.kind) {
    case TEC_DECODE_JOIN:
        decode_join(s, e);
        break;
    case TEC_DECODE_BYTES:
        decode_bytes(s, e);
        break;
    case TEC_DECODE_WORDPIECE:
        decode_wordpiece(s, e);
        break;
    case TEC_DECODE_METASPACE:
        decode_metaspace(s, e);
        break;
    case TEC_DECODE_SPACED:
        push_text(s, " ", s->d.first ? 0 : 1);
        push_text(s, e->text.at, e->text.n);
        break;
    case TEC_DECODE_MODEL:
        decode_model(s, e);
        return;
    }
    s->d.first = false;
}

void tec_detokenizer_init(struct tec_detokenizer *d, const struct tec_tokenizer *t,
                          bool skip_special)
{
    *d =
        (struct tec_detokenizer){.t = t, .skip_special = skip_special, .first = true, .bare = true};
}

static size_t finish(struct tec_detokenizer *d, const struct sink *s)
{
    if (s->n <= s->capacity)
        *d = s->d;
    return s->n;
}

size_t tec_detokenizer_push(struct tec_detokenizer *d, int id, char *out, size_t capacity)
{
    struct sink s = {*d, out, capacity, 0};
    const struct tec_vocab_entry *e = tec_vocab_entry(&d->t->vocab, id);
    if (!e || (d->skip_special && d->t->vocab.special[id]))
        return 0;
    decode_one(&s, e);
    return finish(d, &s);
}

size_t tec_detokenizer_flush(struct tec_detokenizer *d, char *out, size_t capacity)
{
    struct sink s = {*d, out, capacity, 0};
    if (s.d.n_held)
        emit_bad(&s, s.d.n_held);
    s.d.n_held = 0;
    return finish(d, &s);
}

/* Run the detokenizer over all ids and return the number of bytes; `out` may be NULL to count
 * only. */
static size_t run(const struct tec_tokenizer *t, const int *ids, size_t n, bool skip_special,
                  char *out, size_t capacity)
{
    struct tec_detokenizer d;
    size_t total = 0;
    char none[TEC_DETOKENIZER_BYTES];
    tec_detokenizer_init(&d, t, skip_special);
    for (size_t i = 0; i <= n; i++) {
        char *to = out ? out + total : none;
        size_t room = out ? capacity - total : sizeof none;
        total += i < n ? tec_detokenizer_push(&d, ids[i], to, room)
                       : tec_detokenizer_flush(&d, to, room);
    }
    return total;
}

enum tec_status tec_tokenizer_decode(const struct tec_tokenizer *t, const int *ids, size_t n,
                                     bool skip_special, struct tec_arena *arena, char **text,
                                     size_t *bytes, struct tec_error *err)
{
    if (!t || !arena || !text || !bytes || (!ids && n))
        return tec_fail(err, TEC_INVALID, "decode: an argument is NULL");
    size_t total = run(t, ids, n, skip_special, NULL, 0);
    char *out = TEC_NEW(arena, total + 1, char);
    if (!out)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu bytes of decoded text", total);
    run(t, ids, n, skip_special, out, total);
    *text = out;
    *bytes = total;
    return TEC_OK;
}
