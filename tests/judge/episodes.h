/* episodes.h - a case of recorded episodes opened: the shipped robot with the case's sizes, a
 * session, and the requests of one episode at a time. */
#ifndef TEC_TESTS_JUDGE_EPISODES_H
#define TEC_TESTS_JUDGE_EPISODES_H

#include "graph/run/session/session.h"
#include "tests/judge/pi.h"

struct tec_episodes {
    struct tec_pi pi;
    struct tec_diagnostics diagnostics;
    struct tec_pipeline *shipped, pipeline; /* pipeline: the shipped one with the case's robot */
    const struct tec_decl_input *given;     /* first actions: the last value, some rows of it for
                                               each inference; NULL = this pipeline takes none */
    json_t *robot;
    struct tec_decl_robot declared; /* with it */
    struct tec_tokenizer *tokenizer;
    struct tec_session *session;
    struct tec_plan *plan, *plain; /* with taps; as it runs on a robot */
    int region, plain_region;
    int steps, new_tokens, eos, n_state;
    size_t chunk, robot_chunk;
    /* The episode. */
    const json_t *episode;
    const char *key;
    int n, text_width, prompt_width;
    struct tec_value values[TEC_MAX_CAMERAS + 3];
    size_t stride[TEC_MAX_CAMERAS + 3]; /* bytes from one inference to the next; 0 for text */
    int n_values;
    const float *noise;
};

/* "<episode>.<what>", in the arena. */
const char *tec_episodes_name(struct tec_episodes *j, const char *what);

/* Columns of a tensor with that many rows: the product of its other sizes; 0 when it is missing. */
size_t tec_episodes_columns(const struct tec_tensors *from, const char *name, int rows);

/* The session of a case whose pi is open, tensors too. */
enum tec_status tec_episodes_open(struct tec_episodes *j, struct tec_error *err);

/* The requests of the episode `key` with n inferences. */
enum tec_status tec_episodes_inputs(struct tec_episodes *j, struct tec_error *err);

#endif
