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
    const struct tec_session *of;  /* whose robot has the camera */
    int slot;                      /* of its observation's pictures */
    bool own;                      /* it has a size of its own: what follows is there */
    size_t n;                      /* values of the picture: height x width x 3 */
    bool wide;                     /* the model reads floats, not bytes */
    struct tec_picture picture;    /* how the robot's is brought to that size */
    float *floats;                 /* [n] where the robot makes floats, before they are rounded */
    uint8_t *at[TEC_SESSION_SETS]; /* [n] bytes, or floats in their bytes */
};

/* The view, whose session and slot are there, for a model's picture `index`. The arena must outlive
 * it; tec_session_view_drop gives back what the heap gave. */
enum tec_status tec_session_view_init(struct tec_session_view *view, const struct tec_model *model,
                                      int index, struct tec_arena *arena, struct tec_error *err);

/* Is there a picture in the observation of set `turn`? Then make it: *out is in that set's buffers
 * or the observation's. Errors name the camera's key. */
bool tec_session_view_valid(const struct tec_session_view *view, int turn);
enum tec_status tec_session_view_make(struct tec_session_view *view, const struct tec_value *values,
                                      size_t n_values, int turn, const uint8_t **out,
                                      struct tec_error *err);

void tec_session_view_drop(struct tec_session_view *view);

/* One of the prefills. */
struct tec_secondary_reader {
    const struct tec_decl_node *node; /* the prefill */
    const struct tec_session_model *of;
    struct tec_chain_prompt prompt;
    int n_views;
    struct tec_session_view views[TEC_MAX_CAMERAS]; /* its pictures: of each robot in the order of
                                                     * the slots */
    int n_states;
    const struct tec_session *states[TEC_MAX_ROBOTS]; /* whose robots' states it reads */
    int *bins; /* where those of several stand one behind the other */
};

struct tec_secondary_inputs {
    int n;
    bool *others; /* [n_slots] of the frames' model: its picture is none of the frames' */
    struct tec_secondary_reader readers[TEC_MAX_CHAINS - 1];
};

/* Those of a session whose observer is there: templates and room in its arena. TEC_MALFORMED for a
 * template that has a text or the robot's state where the prefill does not read it, or lacks it
 * where it does; for a picture that the robot has not. */
enum tec_status tec_secondary_init(struct tec_session *session, struct tec_error *err);

/* Bytes of the longest texts. */
size_t tec_secondary_longest(const struct tec_secondary_inputs *secondary);

/* ids[i] becomes room for prompt i. */
enum tec_status tec_secondary_take(const struct tec_secondary_inputs *secondary,
                                   int *ids[TEC_MAX_CHAINS], struct tec_arena *arena,
                                   struct tec_error *err);

/* What prompts of segments hold is given back; and what pictures do. */
void tec_secondary_drop_prompts(struct tec_secondary_inputs *secondary);
void tec_secondary_drop(struct tec_secondary_inputs *secondary);

/* Read them, when the session and those that it is joined to have observed: texts as
 * tec_texts_read, prompts as tec_session_prompt_make; nothing where a stream has no text yet. out:
 * of all chains, those of the readers are written; reader i's points to the i-th ids of the
 * session's set. Errors name the input. */
enum tec_status tec_secondary_read(struct tec_session *session, const struct tec_value *values,
                                   size_t n_values, struct tec_chain_input out[TEC_MAX_CHAINS],
                                   struct tec_error *err);

/* When all prompts of an observation are made: those that are another chain's. */
void tec_secondary_follow(const struct tec_secondary_inputs *secondary,
                          struct tec_chain_input chains[TEC_MAX_CHAINS]);

#endif
