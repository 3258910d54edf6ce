/* parallel.h - the parallel baseline: an engine for actions and one for language, each with its own
 * weights and half of the lanes, both at work at once on the device of the other rows; a frame
 * takes as long as the longer of them. */
#ifndef TEC_TESTS_EXPERIMENTS_OXYGEN_PARALLEL_H
#define TEC_TESTS_EXPERIMENTS_OXYGEN_PARALLEL_H

#include "tests/experiments/oxygen/engines.h"

struct tec_oxygen_pair {
    struct tec_oxygen_engine act, talk;
    struct tec_policy *policy; /* of the language: all its tokens in the frame */
    struct tec_planner planner;
    enum tec_oxygen_input input;
    bool open;
};

/* Whether the lanes can be shared out: one lane of a CPU cannot, and two would not be equal terms.
 */
enum tec_status tec_oxygen_pair_possible(const struct tec_oxygen *suite, bool *possible,
                                         struct tec_error *err);
enum tec_status tec_oxygen_pair_open(struct tec_oxygen_pair *pair, struct tec_oxygen *suite, int S,
                                     enum tec_oxygen_input input, struct tec_error *err);
void tec_oxygen_pair_close(struct tec_oxygen_pair *pair); /* zeroed is allowed */
enum tec_status tec_oxygen_pair_begin(struct tec_oxygen_pair *pair, struct tec_error *err);
enum tec_status tec_oxygen_pair_frame(struct tec_oxygen_pair *pair, struct tec_oxygen_point *point,
                                      int index, bool warmup, struct tec_error *err);
int64_t tec_oxygen_pair_bytes(const struct tec_oxygen_pair *pair);

#endif
