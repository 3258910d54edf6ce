/* pretokenise.h - cutting normalised text into the words that a model sees one by one. */
#ifndef TEC_BASE_TEXT_PRETOKENISE_H
#define TEC_BASE_TEXT_PRETOKENISE_H

#include "base/error.h"
#include "base/text/bytes.h"
#include "base/text/pattern.h"

#include <stdbool.h>
#include <stddef.h>

enum tec_split_kind {
    TEC_SPLIT_PATTERN,    /* words of `pattern` */
    TEC_SPLIT_STRING,     /* at every `delimiter`, by `where` */
    TEC_SPLIT_BERT,       /* at white space, and around each punctuation character */
    TEC_SPLIT_WHITESPACE, /* at white space, which is dropped */
    TEC_SPLIT_WORDS,      /* the same, and where characters of words meet others */
    TEC_SPLIT_MARKS,      /* around each punctuation character, which is dropped if REMOVED */
    TEC_SPLIT_METASPACE,  /* spaces to `delimiter`, one before the word; then before each of them */
    TEC_SPLIT_DIGITS,     /* runs of numbers from the rest, or each number by itself (`cut`) */
    TEC_SPLIT_BYTES,      /* a space before the word (if `prefix`), then `pattern` (may be NULL) */
};

enum tec_split_where { TEC_SPLIT_REMOVED, TEC_SPLIT_ISOLATED, TEC_SPLIT_BEFORE, TEC_SPLIT_AFTER };

enum tec_split_prefix { TEC_PREFIX_NEVER, TEC_PREFIX_FIRST, TEC_PREFIX_ALWAYS };

struct tec_split {
    enum tec_split_kind kind;
    const struct tec_pattern *pattern;
    struct tec_text_span delimiter;
    enum tec_split_where where; /* STRING: the delimiter stays with the text BEFORE or AFTER it */
    enum tec_split_prefix prefix;
    bool cut; /* METASPACE: cut at the spaces too; DIGITS: between numbers too */
};

#define TEC_SPLIT_STEPS 8

struct tec_pretoken {
    struct tec_text_span text;
    bool first; /* starts where the whole text starts */
};

/* A list that grows in an arena. */
struct tec_pretokens {
    struct tec_pretoken *at;
    size_t n, capacity;
};

/* Run the steps over one piece of valid UTF-8; without steps it is one word. Words are never empty.
 * They borrow from `text` or lie in `arena`. Fails with TEC_NO_MEMORY only. */
enum tec_status tec_pretokenise(const struct tec_split *steps, int n_steps,
                                struct tec_pretoken text, struct tec_pretokens *words,
                                struct tec_arena *arena, struct tec_error *err);

#endif
