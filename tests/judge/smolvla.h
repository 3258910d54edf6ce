/* smolvla.h - what the judges of SmolVLA share: a LeRobot folder opened as a robot and a model, and
 * raw observations of a case on their way through both. */
#ifndef TEC_TESTS_JUDGE_SMOLVLA_H
#define TEC_TESTS_JUDGE_SMOLVLA_H

#include "base/text/tokenizer.h"
#include "graph/transform/observer.h"
#include "graph/transform/template.h"
#include "tests/judge/pi.h"

struct tec_smolvla {
    struct tec_pi pi;
    struct tec_robot *robot;
    struct tec_norm state_norm, action_norm;
    struct tec_observer *observer;
    struct tec_tokenizer *tokenizer;
    json_t *templates;
    struct tec_template *template;
    struct tec_observation seen; /* of the observation that was read last, as all below */
    /* The pictures of an observation in the model's order: those that came, then as many of the
     * others as the checkpoint puts blank ones for. */
    int n_images, slot[TEC_MAX_CAMERAS];
    bool valid[TEC_MAX_CAMERAS];    /* came, and its mask does not say otherwise */
    struct tec_prefix_input prefix; /* of the valid ones */
    struct tec_prefix_input all;    /* of every one, as if valid: what the tower makes of them */
    int *ids;                       /* of the prompt */
    const float *noise;
};

/* Open the case's checkpoint. Finish also after a failure. */
enum tec_status tec_smolvla_open(struct tec_smolvla *s, struct tec_verify *v,
                                 struct tec_error *err);
void tec_smolvla_finish(struct tec_smolvla *s);

/* Read the observation whose tensors begin with `prefix` ("frame0."), and the task that goes with
 * it. */
enum tec_status tec_smolvla_read(struct tec_smolvla *s, const char *prefix, const char *task,
                                 struct tec_error *err);

/* A tensor of the inputs as float32; NULL when there is none. */
float *tec_smolvla_floats(struct tec_smolvla *s, const char *prefix, const char *name, size_t *n);

/* Run a plan's frame with taps read afterwards. `chunk` [horizon, dim] or NULL. */
void tec_smolvla_run(struct tec_smolvla *s, struct tec_plan *plan,
                     const struct tec_prefix_input *prefix, const struct tec_action_inputs *more,
                     float *chunk);

/* The columns of n rows of a chunk that are actions, as the model says them: after what the robot
 * decodes, before they are un-normalised. */
float *tec_smolvla_actions(struct tec_smolvla *s, const float *chunk, int n);

/* The same in the robot's units. */
float *tec_smolvla_robot_actions(struct tec_smolvla *s, const float *chunk, int n);

#endif
