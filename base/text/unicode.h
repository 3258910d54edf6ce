/* unicode.h - classes of code points, normal forms, and lower case. */
#ifndef TEC_BASE_TEXT_UNICODE_H
#define TEC_BASE_TEXT_UNICODE_H

#include "base/arena.h"
#include "base/text/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Classes are those of the reference library (tokenizers 0.21.4, which the golden cases were made
 * with; what normal.inc has was asked of 0.22.2), read from
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

/* Lower case without accents, padded when it is an ideograph; NULL when the code point stays. */
const char *tec_unicode_bare(uint32_t code);

/* Stable sort of each run of combining marks of valid UTF-8 by their class (Unicode 3.11, D109), in
 * place. Linear in n, unlike the exchange sort of utf8proc, which hostile text makes quadratic; of
 * `scratch` it takes as many bytes as the longest run has, and gives them back. false: no memory.
 */
bool tec_unicode_order(char *text, size_t n, struct tec_arena *scratch);

/* Bits of a normal form: NFD is 0, NFC composed, NFKD compatible, NFKC both. */
enum tec_unicode_form { TEC_FORM_COMPOSED = 1 << 0, TEC_FORM_COMPATIBLE = 1 << 1 };

/* Append a normal form of valid UTF-8, with the tables of the reference (tokenizers 0.22.2: Unicode
 * 9, to which later marks are letters). It stops where `out` is full, and takes no memory beside
 * `out` but for long runs of marks. */
void tec_unicode_form(struct tec_bytes *out, const char *text, size_t n, unsigned form);

/* The reference's combining marks: all categories of them, and those that its BERT drops. */
bool tec_unicode_mark(uint32_t code);
bool tec_unicode_bert_mark(uint32_t code);

/* What its Nmt drops, and what it makes a space. */
bool tec_unicode_nmt_dropped(uint32_t code);
bool tec_unicode_nmt_space(uint32_t code);

/* Append valid UTF-8 with each character in lower case for itself, as the reference's Lowercase:
 * no letter looks at those around it. */
void tec_unicode_lower_each(struct tec_bytes *out, const char *text, size_t n);

/* Append the text in lower case, as Python's str.lower: the full mapping of Unicode 14, with the
 * two letters that are more than a table: U+0130 becomes two, and a capital sigma at the end of a
 * word becomes a final one. No language's own rules. Bytes that are not UTF-8 are kept. */
void tec_unicode_lower(struct tec_bytes *out, const char *text, size_t n);

/* Length of the first extended grapheme cluster of valid UTF-8, n > 0. */
size_t tec_unicode_grapheme(const char *text, size_t n);

#endif
