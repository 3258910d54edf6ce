/* template.h - prompt templates as data: from an instruction and state bins to texts to encode. */
#ifndef TEC_GRAPH_TRANSFORM_TEMPLATE_H
#define TEC_GRAPH_TRANSFORM_TEMPLATE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/tokenizer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TEC_TEMPLATE_MAX_CALLS = 8 };

/* One text that is encoded on its own: tokens never join across two calls. */
struct tec_template_call {
    const char *text; /* with {text} and {state} */
    bool bos;         /* the begin token goes before it */
    bool literal;     /* spelt special tokens are plain characters: an instruction makes none */
};

/* Immutable, in the arena it was parsed into. */
struct tec_template {
    const char *name;
    bool clean;               /* strip white space at both ends, then '_' and newline to space */
    bool listed;              /* as Python prints a list of it: ['text'] */
    bool lower;               /* then lower case, as Python's str.lower */
    const char *ending;       /* added to the instruction unless it ends so; NULL = nothing */
    const char *ending_piece; /* spelling of a piece of the tokenizer: its id is added to the ids
                               * unless it is their last; NULL = nothing */
    struct tec_template_call *calls;
    int n_calls;
    int memory; /* 1 + the call that stands for the segments of a memory; 0 = none */
    bool state; /* some call has {state} */
};

/* The template `name` of a file's value, an object of
 *
 *     NAME = {clean? = boolean, listed? = boolean, lower? = boolean, ending?, ending_piece?,
 *             calls = list of {text, bos?, literal?}}
 *
 * In a call's text {text} is the instruction and {state} the bins, joined by one space; {memory},
 * alone in a call, is where the segments of a memory go; other braces are refused. TEC_NOT_FOUND
 * with the nearest name, TEC_MALFORMED. The message begins with `where`.
 */
enum tec_status tec_template_parse(struct tec_template **out, const json_t *templates,
                                   const char *name, const char *where, struct tec_arena *arena,
                                   struct tec_error *err);

/* The text of call `i` for an instruction of n bytes (UTF-8; NUL is a character like others):
 * *bytes bytes in `arena`. */
enum tec_status tec_template_render(const char **out, size_t *bytes, const struct tec_template *t,
                                    int i, const char *text, size_t n, const int *bins, int n_bins,
                                    struct tec_arena *arena, struct tec_error *err);

/* The parts of a prompt. */
struct tec_template_values {
    const char *text; /* the instruction, n bytes */
    size_t n;
    const int *bins; /* of the state */
    int n_bins;
};

/* The ids of a prompt: every call rendered and encoded, a begin token before those that ask for it.
 * At most `capacity` ids are written; *count is how many the prompt has, which may be more. Scratch
 * memory is rewound before return. TEC_INVALID when the tokenizer has no begin token, or not the
 * template's last piece; TEC_MALFORMED for text that is not UTF-8. */
enum tec_status tec_template_encode(const struct tec_template *t,
                                    const struct tec_tokenizer *tokenizer,
                                    const struct tec_template_values *values, int *ids,
                                    size_t capacity, size_t *count, struct tec_arena *scratch,
                                    struct tec_error *err);

/* As above, for calls `from` to before `to` alone. */
enum tec_status tec_template_encode_calls(const struct tec_template *t, int from, int to,
                                          const struct tec_tokenizer *tokenizer,
                                          const struct tec_template_values *values, int *ids,
                                          size_t capacity, size_t *count, struct tec_arena *scratch,
                                          struct tec_error *err);

#endif
