/* prompt.h - the formulas of prompts: cleaning or quoting a task text, binning a state. */
#ifndef TEC_GRAPH_TRANSFORM_PROMPT_H
#define TEC_GRAPH_TRANSFORM_PROMPT_H

#include "base/arena.h"

#include <stddef.h>

/* Strip white space from both ends as Python's str.strip does (White_Space and U+001C - 001F), then
 * replace '_' and newline by a space. `text` is n bytes of UTF-8 (other bytes are kept); the result
 * is *n_out bytes in `arena`, NULL when there is no memory. */
char *tec_prompt_clean(const char *text, size_t n, size_t *n_out, struct tec_arena *arena);

/* The text as Python prints a list of it, "['text']": in single quotes, or in double ones where it
 * has single and no double quotes; quotes, backslashes and what is not printable escaped. Bytes
 * that are not UTF-8 are kept. NULL when there is no memory. */
char *tec_prompt_listed(const char *text, size_t n, size_t *n_out, struct tec_arena *arena);

/* The text without what Python's [^\w\s] matches: letters, numbers, '_' and white space stay. Bytes
 * that are not UTF-8 are kept. NULL when there is no memory. */
char *tec_prompt_words(const char *text, size_t n, size_t *n_out, struct tec_arena *arena);

/* Bins of normalised state values: floor(128 x) + 128 held to -1 .. 255, NaN is 255 (equal to
 * digitize(x, linspace(-1, 1, 257)[:-1]) - 1). */
void tec_prompt_state_bins(const double *state, int n, int *bins);

#endif
