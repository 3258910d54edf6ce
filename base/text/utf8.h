/* utf8.h - reading and writing UTF-8, strictly (RFC 3629). */
#ifndef TEC_BASE_TEXT_UTF8_H
#define TEC_BASE_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum tec_utf8 {
    TEC_UTF8_GOOD, /* a whole character */
    TEC_UTF8_BAD,  /* bytes that no character starts with */
    TEC_UTF8_CUT,  /* the start of a character; the rest is beyond the end */
};

/* Look at the n >= 1 bytes at s. Returns the bytes judged: those of the character, of the maximal
 * invalid part (Unicode 3.9, what Python replaces by one U+FFFD), or all n when cut. */
size_t tec_utf8_scan(const char *s, size_t n, enum tec_utf8 *what);

/* Code point at s, which is valid UTF-8 with at least one character left; *bytes is its length. */
uint32_t tec_utf8_get(const char *s, size_t *bytes);

/* Bytes of the character that starts with this byte of valid UTF-8. */
size_t tec_utf8_length(char first);

/* Write a code point, at most 4 bytes; returns how many. Surrogates are the caller's to avoid. */
size_t tec_utf8_put(char *out, uint32_t code);

/* Position of the first byte that is not UTF-8; n when all is. */
size_t tec_utf8_check(const char *s, size_t n);

#endif
