/* session_state.h - between the files of a session: its options, its robot and its sets of buffers.
 * Owned by the session's thread. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_STATE_H
#define TEC_GRAPH_RUN_SESSION_SESSION_STATE_H

#include "graph/run/recall/memory.h"
#include "graph/run/session/session_given.h"
#include "graph/run/session/session_request_prompt.h"
#include "graph/run/session/session_secondary.h"

/* The buffers that one frame input points into. */
struct tec_session_set {
    struct tec_session *session; /* whose it is */
    struct tec_observation seen;
    int *ids;                                            /* [tec_session_prompt_room] */
    char why[sizeof((struct tec_error *)NULL)->message]; /* no prompt could be made of a text */
    int heard; /* of these, when a prompt that waits was made again; else 0 */
    struct tec_chain_prompt_parts parts; /* of a prompt that waits, with copies of its texts; */
    char *texts;                         /* one behind the other: [tec_texts_longest] */
    int *stand_ins;                      /* ids that stood for them: [tec_session_stand_ins] */
    float *noise[TEC_MAX_ACTIONS];       /* [horizon, dim] of each action node */
    float *previous[TEC_MAX_ACTIONS], *pulls[TEC_MAX_ACTIONS]; /* NULL = it has no guide */
    int *prompts[TEC_MAX_PROMPTS];
    int *secondary[TEC_MAX_CHAINS]; /* ids of chains that are not in frames */
};

struct tec_session {
    struct tec_session *next; /* joined; NULL = the last one */
    int first_state;          /* of its own in the states of all that are joined */
    struct tec_session_options options;
    struct tec_heap *heap;
    struct tec_arena arena, scratch;
    struct tec_arena_mark scratch_start; /* keeps the block reserved at create */
    struct tec_robot *robot;
    bool plain;
    struct tec_observer *observer;
    int n_actions;
    struct tec_given given[TEC_MAX_ACTIONS]; /* first actions of each action node */
    struct tec_guiding guides[TEC_MAX_ACTIONS];
    struct tec_request_prompt_inputs prompts;
    struct tec_secondary_inputs secondary;
    struct tec_session_streams streams;
    struct tec_chain_prompt prompt; /* of the frames' prefill */
    bool composes;                  /* it is made of its texts; else of the robot's one text */
    int hears;             /* 1 + the text that it waits for: it is made again, on the frame
                            * thread; 0 = none */
    struct tec_arena late; /* scratch of that */
    int *late_ids;         /* [tec_session_prompt_room] */
    int64_t episode;
    int text_max;         /* bytes of an instruction */
    float **pictures_f32; /* [n_slots] shared by the sets: rounded at once; NULL = not needed */
    struct tec_session_set sets[TEC_SESSION_SETS];
    int turn;                           /* set to be written next */
    const struct tec_session_set *last; /* good one; NULL = none yet */
};

/* session_facts.c: whose an input is, of those that are joined up to `session`: that of its
 * robot; `session` where it is of no named one. */
const struct tec_session *tec_session_whose(const struct tec_session *session, int input);

/* session_prompt.c: what the frames' prompt is made of, from its template and streams on. Then the
 * ids of an observation's prompt into the set, and keys of its texts.
 * `parts->said` are its texts where the session composes it; the robot's one text is put there. */
enum tec_status tec_session_init_prompt(struct tec_session *s, struct tec_error *err);
enum tec_status tec_session_make_prompt(struct tec_session *s, struct tec_chain_prompt_parts *parts,
                                        struct tec_session_set *set, int *n,
                                        struct tec_chain_input *in, struct tec_error *err);

/* Room for the ids that stand for all texts of a prompt that waits, at least 1. */
int tec_session_stand_ins(const struct tec_session *s);

/* Make the prompt of set `self` again, of n tokens of its stream: see struct tec_prompt_maker. */
int tec_session_hear(void *self, const int *tokens, int n, struct tec_error *err);

/* A picture of n values as a model reads it: the robot's floats, or where that is NULL the bytes at
 * `at`, become bytes there, or `wide` floats. And those of an observation. */
void tec_session_give_picture(const float *from, uint8_t *at, size_t n, bool wide);
void tec_session_give_pictures(const struct tec_session *session, struct tec_session_set *set);

#endif
