/* session_texts.h - the texts that a chain's prompt is made of, in the order of its prefill's
 * `reads`: inputs of an observation and streams. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_TEXTS_H
#define TEC_GRAPH_RUN_SESSION_SESSION_TEXTS_H

#include "graph/run/session/session_stream.h"

struct tec_read_text {
    const struct tec_decl_input *input;
    const char *initial; /* of an input: what it is where none is given; NULL = it has to be */
    int stream;          /* -1 = it comes from outside */
    size_t most;         /* bytes */
};

struct tec_session_texts {
    const char *reader;                    /* the prefill's name */
    const struct tec_tokenizer *tokenizer; /* its model's; NULL = ids stand for texts */
    int n;                                 /* 0 = its template holds all of its prompt */
    struct tec_read_text each[TEC_MAX_TEXTS];
};

/* Those of a chain. An input without a default has that of its robot, where it is its prompt. */
void tec_texts_init(struct tec_session_texts *texts, const struct tec_session *session, int chain,
                    const struct tec_tokenizer *tokenizer);

/* Bytes of all of them, joined. */
size_t tec_texts_longest(const struct tec_session_texts *texts);

/* "NAME#ids" of the only text, which is the whole prompt; NULL = none, or there are several. */
const struct tec_value *tec_texts_ids(const struct tec_session_texts *texts,
                                      const struct tec_value *values, size_t n_values);

/* What they are in an observation: values of inputs, or their defaults; newest texts of streams,
 * which may be cut. said->texts is written, and keys and reads of `in`. *whole: none is missing; a
 * stream may have no text yet. Ids of one of several are TEC_INVALID where there is a tokenizer. */
enum tec_status tec_texts_read(const struct tec_session_texts *texts,
                               const struct tec_session_streams *streams,
                               const struct tec_value *values, size_t n_values,
                               struct tec_template_values *said, struct tec_chain_input *in,
                               bool *whole, struct tec_error *err);

/* in->keys[0] of n texts whose keys are there. */
void tec_texts_key(struct tec_chain_input *in, int n);

/* Without a tokenizer: what stands for the texts of an observation replaces the n made ids from
 * `first` on, one text behind the other, as far as there is room: ids that are given, tokens that a
 * stream's writer made; stood[i] of text i. TEC_SHAPE or TEC_INVALID for ids that are none, or too
 * many. */
enum tec_status tec_texts_stand_in(const struct tec_session_texts *texts,
                                   const struct tec_session_streams *streams,
                                   const struct tec_value *values, size_t n_values, int vocab,
                                   int first, int *ids, int n, int stood[TEC_MAX_TEXTS],
                                   struct tec_error *err);

#endif
