/* text_input.h - a text input of an observation as a text or as token ids. */
#ifndef TEC_GRAPH_RUN_LAUNCH_TEXT_INPUT_H
#define TEC_GRAPH_RUN_LAUNCH_TEXT_INPUT_H

#include "graph/load/pipeline.h"
#include "graph/transform/observer.h"

/* The value called `name` with `tail` behind it ("" or "#ids"); NULL = none. */
const struct tec_value *tec_text_find(const struct tec_value *values, size_t n, const char *name,
                                      const char *tail);

/* Ids that were given as such: how many. TEC_SHAPE for other than a list of i32. */
enum tec_status tec_text_count_ids(const struct tec_value *v, int *n, struct tec_error *err);

/* The text of a value, or where it is NULL `initial`; at most `most` bytes. TEC_NOT_FOUND where
 * there is neither: `what` ends that sentence. */
enum tec_status tec_text_of(const struct tec_decl_input *in, const struct tec_value *v,
                            const char *initial, size_t most, const char *what, const char **text,
                            size_t *bytes, struct tec_error *err);

/* n tokens, made up: what a measurement wants. */
void tec_text_make_ids(int n, int vocab, int *ids);

/* TEC_INVALID for an id outside the vocabulary; `why` ("" = not known) ends the sentence. */
enum tec_status tec_text_check(const char *name, const int *ids, int n, int vocab, const char *why,
                               struct tec_error *err);

/* TEC_INVALID: it has `count` tokens, `most` are allowed. */
enum tec_status tec_text_long(const char *name, size_t count, int most, struct tec_error *err);

#endif
