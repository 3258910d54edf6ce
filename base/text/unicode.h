/* unicode.h - classes of code points, canonical composition, and lower case. */
#ifndef TEC_BASE_TEXT_UNICODE_H
#define TEC_BASE_TEXT_UNICODE_H

#include "base/arena.h"
#include "base/text/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Classes are those of the reference library (tokenizers 0.21.4), read from
 * tests/golden/tokenizers/codepoints.json: L, N and White_Space of Unicode 16; the BERT_ ones of
 * Unicode 8. Order is that of tools/tables/make_unicode.py. */
enum tec_class {
    TEC_CLASS_LETTER = 1 << 0,
    TEC_CLASS_NUMBER = 1 << 1,
    TEC_CLASS_SPACE = 1 << 2,
    TEC_CLASS_BERT_REMOVED = 1 << 3,
    TEC_CLASS_BERT_SPACE = 1 << 4,
    TEC_CLASS_BERT_CJK = 1 << 5,
    TEC_CLASS_BERT_PUNCTUATION = 1 << 6,
};

/* The set of classes of a code point (bits of enum tec_class). */
unsigned tec_unicode_class(uint32_t code);

/* Letters, marks, digits, connectors: \w of a regular expression. */
bool tec_unicode_word(uint32_t code);

/* A mark that takes no place of its own (category Mn). */
bool tec_unicode_accent(uint32_t code);

/* Lower case without accents, padded when it is an ideograph; NULL when the code point stays. */
const char *tec_unicode_bare(uint32_t code);

/* Stable sort of each run of combining marks by its class (Unicode 3.11, D109). Linear in n, unlike
 * the exchange sort of utf8proc, which hostile text makes quadratic. false: no memory. */
bool tec_unicode_order(int32_t *codes, size_t n, struct tec_arena *scratch);

/* Append the NFC form of valid UTF-8. Unicode 14 (utf8proc), marks in the order of Unicode 9, as
 * the reference has them. */
void tec_unicode_nfc(struct tec_bytes *out, const char *text, size_t n);

/* Append the text in lower case, as Python's str.lower: the full mapping of Unicode 14, with the
 * two letters that are more than a table: U+0130 becomes two, and a capital sigma at the end of a
 * word becomes a final one. No language's own rules. Bytes that are not UTF-8 are kept. */
void tec_unicode_lower(struct tec_bytes *out, const char *text, size_t n);

/* Length of the first extended grapheme cluster of valid UTF-8, n > 0. */
size_t tec_unicode_grapheme(const char *text, size_t n);

#endif
