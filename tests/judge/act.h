/* act.h - what the judges of chunks from an encoder's rows share: a LeRobot checkpoint with its own
 * processors, from raw observations to the robot's actions. */
#ifndef TEC_TESTS_JUDGE_ACT_H
#define TEC_TESTS_JUDGE_ACT_H

#include "graph/transform/observer.h"
#include "tests/judge/pi.h"

struct tec_act {
    struct tec_pi pi;
    struct tec_plan *plan;
    struct tec_robot *robot;
    struct tec_observer *observer;
    struct tec_observation seen; /* of the last frame */
    float *chunk;                /* [horizon, dim] of the last frame */
};

/* Open the case's checkpoint, inputs and expected tensors, and plan it. Finish also after a
 * failure. */
enum tec_status tec_act_open(struct tec_act *act, struct tec_verify *v, bool taps,
                             struct tec_error *err);
void tec_act_finish(struct tec_act *act);

/* Observe inputs whose names begin with `prefix` ("frame0."), and compute their chunk. */
enum tec_status tec_act_frame(struct tec_act *act, const char *prefix, struct tec_error *err);

/* Rows of the model's actions in the robot's units, by the last observation: [rows, actions] in the
 * arena. */
enum tec_status tec_act_robot(struct tec_act *act, const float *rows, int n, float **out,
                              struct tec_error *err);

#endif
