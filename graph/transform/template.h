/* template.h - prompt templates as data: from an instruction and state bins to texts to encode. */
#ifndef TEC_GRAPH_TRANSFORM_TEMPLATE_H
#define TEC_GRAPH_TRANSFORM_TEMPLATE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/tokenizer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TEC_TEMPLATE_MAX_CALLS = 8, TEC_TEMPLATE_MAX_TEXTS = 8 };

/* One text that is encoded on its own: tokens never join across two calls. */
struct tec_template_call {
    const char *text; /* with {text}, {text1} and so on, and {state} */
    bool bos;         /* the begin token goes before it */
    bool literal;     /* spelt special tokens are plain characters: an instruction makes none */
};

/* Immutable, in the arena it was parsed into. */
struct tec_template {
    const char *name;
    bool clean;               /* strip white space at both ends, then '_' and newline to space */
    bool listed;              /* as Python prints a list of it: ['text'] */
    bool lower;               /* then lower case, as Python's str.lower */
    bool words;               /* then without punctuation: tec_prompt_words */
    const char *ending;       /* added to the instruction unless it ends so; NULL = nothing */
    const char *ending_piece; /* spelling of a piece of the tokenizer: its id is added to the ids
                               * unless it is their last; NULL = nothing */
    struct tec_template_call *calls;
    int n_calls;
    int memory;     /* 1 + the call that stands for the segments of a memory; 0 = none */
    unsigned texts; /* marks that some call has: bit 0 {text}, bit n {textN} */
    bool state;     /* some call has {state} */
};

/* The template `name` of a file's value, an object of
 *
 *     NAME = {clean? = boolean, listed? = boolean, lower? = boolean, words? = boolean,
 *             ending?, ending_piece?, calls = list of {text, bos?, literal?}}
 *
 * In a call's text {text} is the instruction: all texts that are not empty, a line each. {text1} is
 * the first of them alone, {text2} the second. {state} is the bins, joined by one space; {memory},
 * alone in a call, is where the segments of a memory go; other braces are refused. TEC_NOT_FOUND
 * with the nearest name, TEC_MALFORMED. The message begins with `where`.
 */
enum tec_status tec_template_parse(struct tec_template **out, const json_t *templates,
                                   const char *name, const char *where, struct tec_arena *arena,
                                   struct tec_error *err);

/* One of the texts that a prompt is made of. */
struct tec_template_text {
    const char *text; /* UTF-8; NUL is a character like others */
    size_t n;         /* bytes */
    bool cut;         /* what does not fit of it is left out */
};

/* The parts of a prompt. Texts are borrowed. */
struct tec_template_values {
    struct tec_template_text texts[TEC_TEMPLATE_MAX_TEXTS];
    int n_texts;
    const int *bins; /* of the state */
    int n_bins;
};

/* Whether a template places each of n texts, and no other: a sentence about what is wrong, in the
 * arena, or NULL. */
const char *tec_template_misplaces(const struct tec_template *t, int n, struct tec_arena *arena);

/* All texts as {text} has them before the template cleans them: *bytes bytes, in `arena` where
 * there are several. NULL: no memory. */
const char *tec_template_join(const struct tec_template_values *values, size_t *bytes,
                              struct tec_arena *arena);

/* A text whose prompt has `count` tokens where `most` fit: how many of its bytes are kept. Fewer
 * than there are; never half a character. */
size_t tec_template_keeps(const char *text, size_t bytes, size_t count, size_t most);

/* Shorten so the last text that may be cut and is not empty. False: there is none. */
bool tec_template_cut(struct tec_template_values *values, size_t count, size_t most);

/* The text of call `i`: *bytes bytes in `arena`. */
enum tec_status tec_template_render(const char **out, size_t *bytes, const struct tec_template *t,
                                    int i, const struct tec_template_values *values,
                                    struct tec_arena *arena, struct tec_error *err);

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
