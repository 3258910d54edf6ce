/* pattern.h - the published pre-tokeniser patterns, recognised by their text, run as scanners. */
#ifndef TEC_BASE_TEXT_PATTERN_H
#define TEC_BASE_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct tec_pattern {
    const char *text;
    bool fold;  /* contractions match in either case */
    bool lead;  /* letters may follow any one character but CR, LF, letter, number; else a space */
    int digits; /* most numbers in a word; 0: any number of them, after an optional space */
    bool newline; /* CR and LF end a run of marks; white space is cut after its last CR or LF */
};

/* The pattern with this text; NULL when it is none of patterns.def. */
const struct tec_pattern *tec_pattern_find(const char *text, size_t n);

/* The first pattern of patterns.def, and the one with single digits: for files that name none. */
const struct tec_pattern *tec_pattern_plain(void);
const struct tec_pattern *tec_pattern_digits(void);

/* Length of the word that valid UTF-8 starts with, n > 0. Looks at no more than that word and one
 * character, so a whole text is scanned in linear time. */
size_t tec_pattern_word(const struct tec_pattern *p, const char *s, size_t n);

#endif
