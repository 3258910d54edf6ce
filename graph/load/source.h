/* source.h - the text of a pipeline file as tokens: where a table, a key or a value was written.
 *
 * Lua keeps no column, and no line for a plain table. Before a source is compiled each table
 * constructor in it gets a hidden first field that names its opening brace; from there the tokens
 * say where a key or a value stands. The line numbers of the text do not change. The same tokens
 * serve JSON. */
#ifndef TEC_GRAPH_LOAD_SOURCE_H
#define TEC_GRAPH_LOAD_SOURCE_H

#include "base/arena.h"
#include "graph/load/diagnostics.h"

#include <stdbool.h>
#include <stddef.h>

enum tec_token_kind {
    TEC_TOKEN_NAME,
    TEC_TOKEN_STRING,
    TEC_TOKEN_NUMBER,
    TEC_TOKEN_OPEN,  /* { ( [ */
    TEC_TOKEN_CLOSE, /* } ) ] */
    TEC_TOKEN_SYMBOL
};

struct tec_token {
    enum tec_token_kind kind;
    int begin, end; /* bytes of the text */
    int line, col;  /* of the first byte */
    int match;      /* of a bracket: the other one; else -1 */
};

enum { TEC_MAX_SOURCE = 1 << 20 };

struct tec_source {
    const char *file; /* as the user knows it */
    const char *text;
    size_t n;
    bool json;
    int n_tokens; /* 0 when the text cannot be cut into tokens */
    struct tec_token *tokens;
};

/* An entry of a table: token indices, inclusive. Without a key: key_first = -1. */
struct tec_source_span {
    int key_first, key_last;
    int first, last; /* of the value */
};

/* Cut into tokens with balanced brackets; tokens live in `arena`. False without memory; a text that
 * makes no sense has n_tokens = 0, its compiler will say why. */
bool tec_source_lex(struct tec_source *source, struct tec_arena *arena);

/* The text with a hidden field [mark] = base + token in every table; NUL-terminated, in `arena`. */
char *tec_source_annotate(const struct tec_source *source, long base, struct tec_arena *arena,
                          size_t *n);

/* Step through a table: *at starts as the open token + 1. False at the end. */
bool tec_source_next(const struct tec_source *source, int open, int *at,
                     struct tec_source_span *span);

/* The entry with this key, or the n-th (from 0) without one when key is NULL. */
bool tec_source_find_key(const struct tec_source *source, int open, const char *key, int n,
                         struct tec_source_span *span);

/* The key of an entry as bytes of the text; false without one or with escapes in it. */
bool tec_source_key(const struct tec_source *source, const struct tec_source_span *span,
                    const char **key, int *n);

/* The place of tokens first to last; of a table: the word before its brace, or the brace. */
struct tec_where tec_source_where(const struct tec_source *source, int first, int last);
struct tec_where tec_source_where_table(const struct tec_source *source, int open);

/* The first name `name` on a line; only the line when it is not there exactly once. */
struct tec_where tec_source_where_name(const struct tec_source *source, int line, const char *name);

/* The option `key` of a call of `word` on a line: the name in a table that stands among its
 * arguments. The word where no call has it, or several. */
struct tec_where tec_source_where_option(const struct tec_source *source, int line,
                                         const char *word, const char *key);

/* Report keys that stand twice in one table, E013. */
void tec_source_check_keys(const struct tec_source *source, struct tec_arena *arena,
                           struct tec_diagnostics *d);

#define TEC_MARK "\1" /* key of the hidden field */

#endif
