/* session_secondary.h - what the prefills of secondary models read: texts of an observation and
 * streams, through a template of its own and the tokenizer of its model, and pictures and the state
 * as the frames' prefill reads them. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_SECONDARY_H
#define TEC_GRAPH_RUN_SESSION_SESSION_SECONDARY_H

#include "graph/run/session/prompt.h"
#include "graph/transform/picture.h"

/* session_views.c: the pictures that it reads: those of the frames' model as they are, or where its
 * own model sees another size, made from what the robot sent. One picture of a prompt. */
struct tec_session_view {
    int slot;                      /* of the observation's pictures */
    bool own;                      /* it has a size of its own: what follows is there */
    size_t n;                      /* values of the picture: height x width x 3 */
    bool wide;                     /* the model reads floats, not bytes */
    struct tec_picture picture;    /* how the robot's is brought to that size */
    float *floats;                 /* [n] where the robot makes floats, before they are rounded */
    uint8_t *at[TEC_SESSION_SETS]; /* [n] bytes, or floats in their bytes */
};

/* The picture of `slot` for a model's picture `index`; `frames` is the model of the observer. The
 * arena must outlive the view; tec_session_view_drop gives back what the heap gave. */
enum tec_status tec_session_view_init(struct tec_session_view *view, int slot,
                                      const struct tec_model *model, int index,
                                      const struct tec_model *frames,
                                      const struct tec_observer *observer, struct tec_arena *arena,
                                      struct tec_error *err);

/* Make it of an observation whose picture is valid, in set `turn`: *out is in that set's buffers or
 * the observation's. Errors name the camera's key. */
enum tec_status tec_session_view_make(struct tec_session_view *view, const struct tec_value *values,
                                      size_t n_values, const struct tec_observation *seen, int turn,
                                      const uint8_t **out, struct tec_error *err);

void tec_session_view_drop(struct tec_session_view *view);

/* One of the prefills. */
struct tec_secondary_reader {
    const struct tec_decl_node *node; /* the prefill */
    const struct tec_session_model *of;
    struct tec_chain_prompt prompt;
    int n_views;
    struct tec_session_view views[TEC_MAX_CAMERAS]; /* its pictures, in the order of the slots */
};

struct tec_secondary_inputs {
    int n;
    bool *others; /* [n_slots] of the frames' model: its picture is none of the frames' */
    struct tec_secondary_reader readers[TEC_MAX_CHAINS - 1];
};

/* Templates and room in the arena. TEC_MALFORMED for a template that has a text or the robot's
 * state where the prefill does not read it, or lacks it where it does; for a picture that the robot
 * has not. */
enum tec_status tec_secondary_init(struct tec_secondary_inputs *secondary,
                                   const struct tec_session_options *options,
                                   const struct tec_robot *robot,
                                   const struct tec_session_streams *streams,
                                   const struct tec_observer *observer, struct tec_arena *arena,
                                   struct tec_error *err);

/* Bytes of the longest texts. */
size_t tec_secondary_longest(const struct tec_secondary_inputs *secondary);

/* ids[i] becomes room for prompt i. */
enum tec_status tec_secondary_take(const struct tec_secondary_inputs *secondary,
                                   int *ids[TEC_MAX_CHAINS], struct tec_arena *arena,
                                   struct tec_error *err);

/* What prompts of segments hold is given back; and what pictures do. */
void tec_secondary_drop_prompts(struct tec_secondary_inputs *secondary);
void tec_secondary_drop(struct tec_secondary_inputs *secondary);

/* Read them: texts as tec_texts_read, prompts as tec_session_prompt_make; nothing where a stream
 * has no text yet. out: of all chains, those of the readers are written; reader i's points to
 * ids[i]. Errors name the input. */
enum tec_status tec_secondary_read(struct tec_secondary_inputs *secondary,
                                   const struct tec_value *values, size_t n_values,
                                   const struct tec_observation *seen, int turn,
                                   int *const ids[TEC_MAX_CHAINS],
                                   struct tec_chain_input out[TEC_MAX_CHAINS],
                                   struct tec_arena *scratch, struct tec_error *err);

/* When all prompts of an observation are made: those that are another chain's. */
void tec_secondary_follow(const struct tec_secondary_inputs *secondary,
                          struct tec_chain_input chains[TEC_MAX_CHAINS]);

#endif
