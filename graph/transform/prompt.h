/* prompt.h - a task text and a state become the token ids of a prompt, by a template that is data.
 */
#ifndef TEC_GRAPH_TRANSFORM_PROMPT_H
#define TEC_GRAPH_TRANSFORM_PROMPT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>

enum tec_prompt_kind {
    TEC_PROMPT_LITERAL, /* `text` of the part */
    TEC_PROMPT_CLEAN,   /* the task after tec_prompt_clean */
    TEC_PROMPT_RAW,     /* the task as it is */
    TEC_PROMPT_LINE,    /* the task as it is, and a newline unless it ends with one */
    TEC_PROMPT_STATE,   /* the bins of the state in decimal, one space between them */
};

struct tec_prompt_part {
    enum tec_prompt_kind kind;
    bool apart;       /* starts an encode call of its own: no merge reaches across */
    const char *text; /* LITERAL; borrowed, NUL-terminated */
};

/* How a prompt is put together. Three known ones, as parts:
 *   CLEAN, LITERAL "\n" apart
 *   LITERAL "Task: ", CLEAN, LITERAL ", State: ", STATE, LITERAL ";\nAction: "
 *   LINE                                                     */
struct tec_prompt_template {
    const struct tec_prompt_part *parts;
    int n_parts;
    bool bos;              /* the tokenizer's bos id first; an error when it has none */
    struct tec_encode how; /* of each encode call */
    int max_tokens;        /* longer prompts are cut on the right */
    int pad;               /* id that fills up to max_tokens */
};

/* Strip white space from both ends as Python's str.strip does (White_Space and U+001C - 001F), then
 * replace '_' and newline by a space. `text` is n bytes of UTF-8 (other bytes are kept); the result
 * is *n_out bytes in `arena`, NULL when there is no memory. */
char *tec_prompt_clean(const char *text, size_t n, size_t *n_out, struct tec_arena *arena);

/* Bins of normalised state values: floor(128 x) + 128 held to -1 .. 255, NaN is 255 (equal to
 * digitize(x, linspace(-1, 1, 257)[:-1]) - 1). */
void tec_prompt_state_bins(const double *state, int n, int *bins);

struct tec_prompt {
    int n_valid;  /* ids before the padding */
    int n_needed; /* ids the whole prompt has; more than max_tokens means it was cut */
};

/* Put the prompt together and write max_tokens ids. `state` is n_state normalised values, not
 * padded (NULL when no part is STATE). Fails when the task is not UTF-8. Scratch memory is rewound.
 */
enum tec_status tec_prompt_build(const struct tec_prompt_template *how,
                                 const struct tec_tokenizer *tokenizer, const char *task,
                                 size_t n_task, const double *state, int n_state, int *ids,
                                 struct tec_prompt *out, struct tec_arena *scratch,
                                 struct tec_error *err);

#endif
