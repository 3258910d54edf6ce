/* groot.h - what the judges of GR00T share: a checkpoint opened for a robot, and the inputs of a
 * case.
 */
#ifndef TEC_TESTS_JUDGE_GROOT_H
#define TEC_TESTS_JUDGE_GROOT_H

#include "tests/judge/pi.h"

struct tec_groot {
    struct tec_pi pi;
    struct tec_prefix_input prefix;
    const float *noise, *state; /* of the case's inputs; normalised and padded */
};

/* Open the case's checkpoint for its embodiment, and its inputs. Finish also after a failure. */
enum tec_status tec_groot_open(struct tec_groot *g, struct tec_verify *v, struct tec_error *err);
void tec_groot_finish(struct tec_groot *g);

/* A tensor as float32; NULL when there is none. */
float *tec_groot_floats(struct tec_groot *g, const struct tec_tensors *from, const char *name,
                        size_t *n);

/* A plan of so many steps, and a frame of it. `chunk` [horizon, dim]. */
enum tec_status tec_groot_plan(struct tec_groot *g, struct tec_plan **plan, int steps, bool taps,
                               struct tec_error *err);
enum tec_status tec_groot_run(struct tec_groot *g, struct tec_plan *plan, float *chunk,
                              struct tec_error *err);

#endif
