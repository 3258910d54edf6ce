/* session_text.h - what files of the session share: a text input of an observation as token ids. */
#ifndef TEC_GRAPH_RUN_SESSION_TEXT_H
#define TEC_GRAPH_RUN_SESSION_TEXT_H

#include "graph/run/session.h"

/* The value called `name` with `tail` behind it ("" or "#ids"); NULL = none. */
const struct tec_value *tec_text_find(const struct tec_value *values, size_t n, const char *name,
                                      const char *tail);

/* Ids that were given as such; room for the input's max_tokens. TEC_SHAPE or TEC_INVALID. */
enum tec_status tec_text_take_ids(const struct tec_decl_input *in, const struct tec_value *v,
                                  int *ids, int *n, struct tec_error *err);

/* The text of a value, of the input's default where it is NULL; at most `most` bytes. TEC_NOT_FOUND
 * where there is neither: `what` ends that sentence. */
enum tec_status tec_text_of(const struct tec_decl_input *in, const struct tec_value *v, size_t most,
                            const char *what, const char **text, size_t *bytes,
                            struct tec_error *err);

/* As many tokens as fit, made up: what a measurement wants. */
int tec_text_make_ids(const struct tec_decl_input *in, int vocab, int *ids);

/* TEC_INVALID for an id outside the vocabulary. */
enum tec_status tec_text_check(const struct tec_decl_input *in, const int *ids, int n, int vocab,
                               struct tec_error *err);

/* TEC_INVALID: it has `count` tokens. */
enum tec_status tec_text_long(const struct tec_decl_input *in, size_t count, struct tec_error *err);

#endif
