/* session_request_prompt.h - prompts that decode nodes have of their own: texts of an observation
 * that are read behind a prefix. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_REQUEST_PROMPT_H
#define TEC_GRAPH_RUN_SESSION_SESSION_REQUEST_PROMPT_H

#include "graph/run/session/session.h"

/* One of them: an input as the model of a chain reads it. */
struct tec_request_prompt_input {
    int at; /* which of the pipeline's prompts it is */
    const struct tec_decl_input *input;
    const struct tec_tokenizer *tokenizer; /* NULL = ids stand for the text */
    int vocab;
};

/* Those of the session's chain, and of the chains whose prompts it makes. */
struct tec_request_prompt_inputs {
    int n;
    struct tec_request_prompt_input each[TEC_MAX_PROMPTS];
};

void tec_session_request_prompt_init(struct tec_request_prompt_inputs *prompts,
                                     const struct tec_session_options *options);

/* ids[i] becomes room for prompt i. */
enum tec_status tec_session_request_prompt_take(const struct tec_request_prompt_inputs *prompts,
                                                int *ids[TEC_MAX_PROMPTS], struct tec_arena *arena,
                                                struct tec_error *err);

/* Read them: the value of an input's name, a text of at most `text_max` bytes, or "NAME#ids", or
 * the input's default; without a tokenizer as long as can be. No begin token goes before it.
 * out: of all the pipeline's, those of the session are written; the i-th points to ids[i].
 * TEC_NOT_FOUND, TEC_SHAPE or TEC_INVALID name the input. */
enum tec_status tec_session_request_prompt_read(const struct tec_request_prompt_inputs *prompts,
                                                const struct tec_value *values, size_t n_values,
                                                size_t text_max, int *const ids[TEC_MAX_PROMPTS],
                                                struct tec_request_prompt out[TEC_MAX_PROMPTS],
                                                struct tec_arena *scratch, struct tec_error *err);

#endif
