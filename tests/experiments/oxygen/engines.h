/* engines.h - the engines that the suite's points run on, and the inputs that they are given. */
#ifndef TEC_TESTS_EXPERIMENTS_OXYGEN_ENGINES_H
#define TEC_TESTS_EXPERIMENTS_OXYGEN_ENGINES_H

#include "tests/experiments/oxygen/oxygen.h"

enum { TEC_OXYGEN_VALUES = 16 };

/* One robot's engine for one S. Its loop starts language only when asked. Zeroed is closed;
 * must not move while it is open. */
struct tec_oxygen_engine {
    struct tec_suite_engine base;
    size_t n_values;
    struct tec_value values[TEC_OXYGEN_INPUTS][TEC_BENCH_INPUTS][TEC_OXYGEN_VALUES];
    struct tec_frame_input input[TEC_BENCH_INPUTS]; /* of the last tec_oxygen_show */
};

/* Open `file` for S steps with `threads` lanes (0: as the call says), on the device that the call
 * chooses in either case; `sessions`: whose observations may be in one frame, as powers of two are
 * captured. */
struct tec_oxygen_plan {
    const char *file;
    int S, threads, sessions; /* sessions 0: one */
};
enum tec_status tec_oxygen_open(struct tec_oxygen_engine *e, struct tec_oxygen *suite,
                                const struct tec_oxygen_plan *plan, struct tec_error *err);
void tec_oxygen_close(struct tec_oxygen_engine *e);

/* Make its three inputs those of a kind. */
enum tec_status tec_oxygen_show(struct tec_oxygen_engine *e, enum tec_oxygen_input kind,
                                struct tec_error *err);

/* Bytes of the plan of `file` with `request_slots` requests, without taking them. */
enum tec_status tec_oxygen_measure(int64_t *bytes, struct tec_oxygen *suite, const char *file,
                                   int request_slots, struct tec_error *err);

#endif
