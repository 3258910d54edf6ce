/* pi.h - what the judges of flow-matching models share: a checkpoint opened, planned, and run on
 * the inputs of a case. */
#ifndef TEC_TESTS_JUDGE_PI_H
#define TEC_TESTS_JUDGE_PI_H

#include "graph/run/launch/launch.h"
#include "tests/judge/verify.h"

struct tec_pi {
    struct tec_verify *v;
    struct tec_device *device;
    struct tec_checkpoint *checkpoint;
    struct tec_model *model;
    struct tec_weights *weights;
    struct tec_tensors *inputs, *expected;
    json_t *sibling;       /* case.json of same_inputs_as, or NULL */
    const json_t *tensors; /* error bounds by tensor name */
    int max_text;
    int fixed;                    /* most given actions of the plans that are made */
    float guidance;               /* of their actions; 0 = none */
    int positions;                /* of their rotation tables; 0 = as many as they need */
    int segments, segment_tokens; /* of their memory; 0 = none */
    float penalty;                /* of tokens that were there before; 0 = none */
};

/* Inputs of one observation, read from the case under a name prefix ("A.", "frame0."). */
struct tec_pi_inputs {
    struct tec_prefix_input o;
    bool camera_valid[TEC_MAX_CAMERAS];
    int slot_row[TEC_MAX_CAMERAS]; /* index of a slot's picture among the valid ones */
    const float *noise, *state;
    int n_fixed; /* given actions in the first rows of noise */
};

/* Gives every row of the time a name: such rows are kept. Before a plan is made. */
void tec_pi_keep_times(struct tec_model *model);

/* The row of the time whose columns scale, shift and gate by a norm of the action's; -1 = there are
 * not so many such norms. How many there are. */
int tec_pi_modulation(const struct tec_model_program *program, int norm);
int tec_pi_modulations(const struct tec_model_program *program);

/* Open checkpoint `path` (relative to the case; NULL: the case's own) with text mask "bidir" or
 * "causal" (NULL: the model's). Finish also after a failure. */
enum tec_status tec_pi_open(struct tec_pi *pi, struct tec_verify *v, const char *path,
                            const char *mask, struct tec_error *err);
/* The same with the parts in folder `beside` (NULL: the checkpoint's), and `overrides` of what the
 * description is given; "arch" among them names it. */
enum tec_status tec_pi_open_beside(struct tec_pi *pi, struct tec_verify *v, const char *path,
                                   const char *beside, json_t *overrides, struct tec_error *err);
void tec_pi_finish(struct tec_pi *pi);

/* Open the case's inputs and expected tensors. */
enum tec_status tec_pi_open_tensors(struct tec_pi *pi, struct tec_error *err);

/* A plan for the case's sizes. taps: keep tensors and run every layer whole. */
enum tec_status tec_pi_plan(struct tec_pi *pi, struct tec_plan **plan, int steps, int request_slots,
                            int new_tokens, bool taps, struct tec_error *err);

enum tec_status tec_pi_read(struct tec_pi *pi, const char *prefix, struct tec_pi_inputs *in,
                            struct tec_error *err);

/* The case's path joined with `name`, in the arena. */
const char *tec_pi_path(const struct tec_pi *pi, const char *name);

/* Compare got [n] with the expected tensor `check` by its bounds; a missing or differently sized
 * tensor is reported as not ok. */
void tec_pi_compare(struct tec_pi *pi, const char *check, const float *got, size_t n,
                    const char *tap);

/* The same of a tensor whose last n values are compared. */
void tec_pi_compare_last(struct tec_pi *pi, const char *check, const float *got, size_t n,
                         const char *tap);

/* Rows of a tap that the last launch filled. */
int tec_pi_live(struct tec_pi *pi, const struct tec_tap *tap);

/* Live rows of a part's tap from row `first` on, dense, in the arena; rows < 0: all. *n values;
 * NULL when there is no such tap. */
float *tec_pi_tap(struct tec_pi *pi, const struct tec_plan_part *part, const char *name, int first,
                  int rows, size_t *n);

/* [S, H, A] from the taps of a flow's steps, "<tap>0" to "<tap>S-1", in the arena. With `noise` [H,
 * A] [S + 1, H, A]: that first, and taps that count from 1. *n values; NULL when a tap is not
 * there. */
float *tec_pi_steps(struct tec_pi *pi, const struct tec_plan *plan, const char *tap,
                    const float *noise, size_t *n);

/* Whether two runs gave the same bytes: a check of its own. */
void tec_pi_same(struct tec_pi *pi, const char *check, const void *a, const void *b, size_t bytes);

#endif
