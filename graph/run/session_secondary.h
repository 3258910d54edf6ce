/* session_secondary.h - what the prefills of secondary models read: a text of an observation each,
 * through a template of its own and the tokenizer of its model, and pictures and the state as the
 * frames' prefill reads them. */
#ifndef TEC_GRAPH_RUN_SESSION_SECONDARY_H
#define TEC_GRAPH_RUN_SESSION_SECONDARY_H

#include "graph/run/session_stream.h"
#include "graph/run/session_views.h"

/* One of them. A text that is that of the observation before is not encoded again. */
struct tec_secondary_reader {
    const struct tec_decl_node *node; /* the prefill */
    const struct tec_decl_input *input;
    int stream;  /* that the input is; -1 = it comes from outside */
    size_t room; /* tokens of a stream's text */
    const struct tec_session_model *of;
    int session; /* whose memory it looks into */
    struct tec_template *template;
    int n_views;
    struct tec_session_view views[TEC_MAX_CAMERAS]; /* its pictures, in the order of the slots */
    size_t text_max;                                /* bytes of the text */
    char *text; /* the last one, and its ids; [text_max], [max_tokens] */
    size_t bytes;
    int *ids, n;    /* n -1: none yet */
    int64_t number; /* of a stream's version that the ids are of; 0 = of its default */
    struct tec_memory_prompt *rooms; /* [TEC_SESSION_SETS] with a memory; else NULL */
};

struct tec_secondary_inputs {
    int n;
    bool *others; /* [n_slots] of the frames' model: its picture is none of the frames' */
    struct tec_secondary_reader readers[TEC_MAX_CHAINS - 1];
};

/* Templates and room in the arena. TEC_MALFORMED for a template that has the robot's state where
 * the prefill does not read it, or lacks it where it does; for a picture that the robot has not. */
enum tec_status tec_secondary_init(struct tec_secondary_inputs *secondary,
                                   const struct tec_session_options *options,
                                   const struct tec_robot *robot,
                                   const struct tec_observer *observer, struct tec_arena *arena,
                                   struct tec_error *err);

/* Bytes of the longest text. */
size_t tec_secondary_longest(const struct tec_secondary_inputs *secondary);

/* ids[i] becomes room for prompt i. */
enum tec_status tec_secondary_take(const struct tec_secondary_inputs *secondary,
                                   int *ids[TEC_MAX_CHAINS], struct tec_arena *arena,
                                   struct tec_error *err);

/* What prompts of segments and pictures hold is given back. */
void tec_secondary_drop(struct tec_secondary_inputs *secondary);

/* Read them: the value of an input's name, a text, or "NAME#ids", or the input's default; of a
 * stream its newest text, and nothing where there is none yet; without a tokenizer as long as can
 * be. With a memory: what
 * stands behind its segments, in room `turn`. out: of all chains, those of the readers are written;
 * reader i's points to ids[i]. Errors name the input. */
enum tec_status tec_secondary_read(struct tec_secondary_inputs *secondary,
                                   const struct tec_session_streams *streams,
                                   const struct tec_value *values, size_t n_values,
                                   const struct tec_observation *seen, int turn,
                                   int *const ids[TEC_MAX_CHAINS],
                                   struct tec_chain_input out[TEC_MAX_CHAINS],
                                   struct tec_arena *scratch, struct tec_error *err);

#endif
