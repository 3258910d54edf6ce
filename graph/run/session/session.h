/* session.h - a robot's way into the frame loop: named values become what a chain of hard nodes
 * reads, and a chunk of its model becomes robot actions. Several chains, of one robot or of more,
 * have a session each, and are joined: one observation is prepared for all of them. Runs on a
 * consumer thread, before submission, so that a slow picture or a hostile prompt delays its own
 * session only. Not thread-safe, but that one thread may be in tec_session_act_on while another is
 * in any other function. */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_H
#define TEC_GRAPH_RUN_SESSION_SESSION_H

#include "base/text/tokenizer.h"
#include "graph/load/pipeline.h"
#include "graph/run/launch/executor.h"
#include "graph/run/launch/noise.h"
#include "graph/transform/observer.h"
#include "graph/transform/template.h"

/* Another chain, and its model. */
struct tec_session_model {
    int chain;  /* of the pipeline */
    bool reads; /* the session makes its prompts: it is not in frames */
    const struct tec_model *model;
    const struct tec_tokenizer *tokenizer; /* as below */
    int max_text;                          /* tokens of a prompt that its plan allows */
    int follows; /* 1 + the chain whose prompt it has as it is; 0: it makes its own */
    struct tec_chain_memory *memory; /* as below */
};

/* Everything is borrowed until destroy. */
struct tec_session_options {
    const struct tec_pipeline *pipeline;
    int chain; /* in frames, of the pipeline: the next three members are its model's */
    const struct tec_model *model;
    const struct tec_checkpoint *checkpoint; /* NULL: random weights; no normalisation then */
    const struct tec_tokenizer *tokenizer;   /* NULL: prompts are given as ids, or made up */
    const char *root;                        /* holds pipelines/ */
    int max_text;                            /* tokens of a prompt that the plan allows */
    struct tec_chain_memory *memory;         /* prompts are of its segments; NULL = none */
    int max_pictures;                        /* that the plan has rows for; 0: all slots */
    uint64_t seed;                           /* of the noise */
    int index;                               /* among those of the engine: whose texts it reads */
    struct tec_text_edges *edges;            /* of streams that prefills read; NULL = none */
    bool full; /* the model has the sizes of a checkpoint, not those of a test */
    struct tec_diagnostics *found; /* gets what inputs and kv.frame have that does not fit, and
                                    * create goes on; NULL: the first such error ends it */
    struct tec_session *joined;    /* those that are there before it: a prefill may read what their
                                    * robots see, too; NULL = it is the first */
    bool again;  /* a session of the same robot has looked at how inputs and robot fit */
    int actions; /* that the robot carries out of a chunk at each observation; 0 = as many as its
                  * description says */
    int n_secondary;
    struct tec_session_model secondary[TEC_MAX_CHAINS - 1];
};

struct tec_session;

/* Reads the robot (the pipeline's, else LeRobot's from the checkpoint, else plain: pictures by
 * input name in slot order, state as it is), its statistics and prompt template, and checks that
 * they fit the model. The template is the one that a prefill node names, else the robot's, else
 * "with_state" for a robot whose state is in the prompt and "plain" for others
 * (pipelines/models/prompts.lua). */
enum tec_status tec_session_create(struct tec_session **out,
                                   const struct tec_session_options *options, struct tec_heap *heap,
                                   struct tec_error *err);
/* NULL is allowed; all that are joined. What their prompts of segments hold is given back before
 * the first of those that share a memory is destroyed. */
void tec_session_drop_prompts(struct tec_session *session);
void tec_session_destroy(struct tec_session *session);

/* Observe, use, reset and destroy of `session` are those of `other` as well, which it owns then.
 * All others are of one session alone: tec_session_of finds that of a chain; NULL = none has it. */
enum tec_status tec_session_join(struct tec_session *session, struct tec_session *other,
                                 struct tec_error *err);
struct tec_session *tec_session_of(struct tec_session *session, int chain);
/* The one behind it; NULL = it is the last. Its chain. */
const struct tec_session *tec_session_next(const struct tec_session *session);
int tec_session_chain(const struct tec_session *session);

enum { TEC_SESSION_SETS = 3 };

/* Which set of buffers, 0 to TEC_SESSION_SETS - 1, the next observation is prepared in, in place of
 * the oldest: for a caller that knows which ones another thread still reads. */
void tec_session_use(struct tec_session *session, int set);

/* One observation from named values. `noise` [horizon, dim], of every action node whose
 * chunk is as large as the first's, or NULL: each draws its own, tec_noise of (seed, node of its
 * chain, frame), so that a robot's is what it would be alone. The input points into one of three
 * sets of buffers that are used in turn, so it stays valid while the next two are prepared. On
 * failure the last good input is untouched and the session goes on.
 *
 * A value named "KEY#ids" (KEY: the robot's prompt input) gives a prompt as token ids (I32, rank
 * 1); with a memory, what stands behind its segments. A prompt with more tokens than the plan or
 * the robot allows is TEC_INVALID; it is cut on the right only where the robot says truncate =
 * true. Pictures that the robot wants as floats (LeRobot's resize) are rounded to u8 for a model
 * that reads bytes.
 *
 * Where an action node has a prefix, the value of its name (F32 or F64 [d, columns], 0 <= d <= the
 * rows declared; absent: d = 0) gives the first d actions in the robot's units. They become the
 * model's by the inverse of tec_session_act_on for this observation's state, and take the place of
 * the first d rows of the noise; a wrong shape, or what is not finite, is refused with the name.
 *
 * The text that the prefill of a secondary chain reads goes through that node's template (where it
 * names none: the robot's if it reads the state, else "plain") and its model's tokenizer;
 * "NAME#ids" gives its ids. Its pictures are those that the robot makes of the cameras it reads.
 * It may read inputs of several robots: then the pictures of one are behind those of another, and
 * so are the bins of their states in {state}, in the order in which it first reads of each.
 *
 * A prefill that reads a stream gets its newest finished text of this episode in place of an
 * input's, through the same template; values for that input are not looked at. A text that does not
 * fit is cut, so that what is said beside it never stops a frame.
 *
 * warning (may be NULL) gets "" or a sentence. Takes no memory but for a camera that is seen for
 * the first time or changes its size; scratch of the tokenizer is one block of an arena that was
 * sized at create and is rewound. */
enum tec_status tec_session_observe(struct tec_session *session, const struct tec_value *values,
                                    size_t n, const float *noise, int64_t frame,
                                    int64_t captured_ns, struct tec_frame_input *input,
                                    char warning[200], struct tec_error *err);

/* A new episode begins: texts of streams from before it are not read any more. */
void tec_session_reset(struct tec_session *session);

/* The newest reset was for nothing: the episode before it goes on. Before an observation of the new
 * one was made. */
void tec_session_resume(struct tec_session *session);

/* Model actions [horizon, dim] to robot actions [rows, columns]; returns rows. Fewer than
 * tec_session_rows when a row is not finite. Without a robot: a copy. state_raw is that of the
 * chunk's observation, of all that are joined, [tec_session_state] (tec_session_observation of the
 * first). out holds tec_session_rows x tec_session_columns. *beyond (NULL is allowed): what was
 * beyond the limits, as tec_robot_act. */
int tec_session_act_on(struct tec_session *session, const double *state_raw, const float *chunk,
                       double *out, struct tec_beyond *beyond);
/* Of the robot's commands, for whoever hands them out; as long as the session. NULL = none. */
const struct tec_limits *tec_session_limits(const struct tec_session *session);
/* Misses in a row that `deadline` (NULL: none) bridges, then the robot stops; 0 = all. Where it
 * does not say, and would repeat commands of a robot that goes on moving then: 3. */
int tec_session_miss_limit(const struct tec_session *session,
                           const struct tec_decl_deadline *deadline);
/* Rows of a chunk that the robot says it carries out before the next one; 0 = not said. */
int tec_session_executed(const struct tec_session *session);
/* Does the robot take means of what all chunks say of an action? Then *m is how it weighs them. */
bool tec_session_ensembles(const struct tec_session *session, double *m);
/* Why row `row` of such a chunk ends the robot's actions, as the end of a sentence that begins with
 * "row 2 of the model's": "is not finite", "ended early: token 3 of 7 is id 2, the end of the
 * text". Takes no memory. */
void tec_session_judge(const struct tec_session *session, const float *chunk, int row, char *out,
                       size_t room);
/* Numbers of the states of all that are joined, one behind the other. */
int tec_session_state(const struct tec_session *session);
int tec_session_rows(const struct tec_session *session);
int tec_session_columns(const struct tec_session *session);

/* For judges: instruction, bins and normalised state of the last good observation (NULL before the
 * first), and the template that makes its prompt. */
const struct tec_observation *tec_session_observation(const struct tec_session *session);
const struct tec_template *tec_session_template(const struct tec_session *session);
const struct tec_robot *tec_session_robot(const struct tec_session *session); /* NULL = none */

/* The key of the robot's prompt; NULL: there is no robot, or its model reads no text. */
const char *tec_session_prompt_key(const struct tec_session *session);
/* Tokens of the frames' prompt of one of the last inputs; of a prompt that waits, when its frame is
 * over, those that it was then made of. */
int tec_session_prompt_tokens(const struct tec_session *session,
                              const struct tec_frame_input *input);
/* Is an input one of several texts of a prompt, so that a tokenizer reads it, which takes no ids?
 * Of all that are joined. */
bool tec_session_spells(const struct tec_session *session, const char *input);
/* The key of the checkpoint's statistics that the robot's actions are un-normalised with; NULL:
 * they have none. */
const char *tec_session_dataset(const struct tec_session *session);
/* Pixels of a side of the pictures that the model takes; 0 = it takes none. */
int tec_session_picture_side(const struct tec_session *session);
/* The size that a picture of this name must have; 0 x 0: of any size, or there is no such camera.
 */
struct tec_picture_size tec_session_picture_size(const struct tec_session *session,
                                                 const char *input);

/* Makes any n ids >= 0 a prompt of the session's model: inside its vocabulary, and with a token for
 * each camera's picture where the model wants one. */
void tec_session_fit_ids(const struct tec_session *session, int *ids, int n);

#endif
