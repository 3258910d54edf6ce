/* session.h - one robot's way into the frame loop: named values become what a launch reads, and a
 * chunk of the model becomes robot actions. Runs on a consumer thread, before submission, so that a
 * slow picture or a hostile prompt delays its own session only. Not thread-safe. */
#ifndef TEC_GRAPH_RUN_SESSION_H
#define TEC_GRAPH_RUN_SESSION_H

#include "base/text/tokenizer.h"
#include "graph/load/pipeline.h"
#include "graph/run/executor.h"
#include "graph/transform/observer.h"
#include "graph/transform/template.h"

/* Everything is borrowed until destroy. */
struct tec_session_options {
    const struct tec_pipeline *pipeline;
    const struct tec_model *model;
    const struct tec_checkpoint *checkpoint; /* NULL: random weights; no normalisation then */
    const struct tec_tokenizer *tokenizer;   /* NULL: prompts are given as ids, or made up */
    const char *root;                        /* holds pipelines/ */
    int max_text;                            /* tokens of a prompt that the plan allows */
    uint64_t seed;                           /* of the noise */
};

struct tec_session;

/* Reads the robot (the pipeline's, else LeRobot's from the checkpoint, else plain: pictures by
 * input name in slot order, state as it is), its statistics and prompt template, and checks that
 * they fit the model. */
enum tec_status tec_session_create(struct tec_session **out,
                                   const struct tec_session_options *options, struct tec_heap *heap,
                                   struct tec_error *err);
void tec_session_destroy(struct tec_session *session); /* NULL is allowed */

/* One observation from named values. `noise` [horizon, dim], or NULL: drawn from (seed, frame) by a
 * counter generator (Philox 4x32-10, Box-Muller in float64). The input points into one of
 * three sets of buffers that are used in turn, so it stays valid while the next one is prepared. A
 * value named "NAME#ids" gives a prompt as token ids (I32). On failure the last good input is
 * untouched. warning (may be NULL) gets "" or a sentence. */
enum tec_status tec_session_observe(struct tec_session *session, const struct tec_value *values,
                                    size_t n, const float *noise, int64_t frame,
                                    int64_t captured_ns, struct tec_frame_input *input,
                                    char warning[200], struct tec_error *err);

/* Model actions [horizon, dim] to robot actions [rows, columns] for the input they came from;
 * returns rows. Without a robot: a copy. out holds tec_session_rows x tec_session_columns. */
int tec_session_act(struct tec_session *session, const struct tec_frame_input *input,
                    const float *chunk, double *out);
int tec_session_rows(const struct tec_session *session);
int tec_session_columns(const struct tec_session *session);

/* For judges: the prompt text, its bins and the normalised state of the last observation. */
const struct tec_observation *tec_session_seen(const struct tec_session *session);
const struct tec_robot *tec_session_robot(const struct tec_session *session); /* NULL = none */

/* Standard normal noise n values for (seed, frame): element i depends on nothing else. */
void tec_noise(uint64_t seed, int64_t frame, float *out, size_t n);

#endif
