/* engines.h - the engines that the suite's points run on, and the inputs that they are given. */
#ifndef TEC_TOOLS_SUITE_ENGINES_H
#define TEC_TOOLS_SUITE_ENGINES_H

#include "tools/suite/suite.h"

enum { TEC_SUITE_VALUES = 16 };

/* One robot's engine for one S. Its loop starts language only when asked. Zeroed is closed;
 * must not move while it is open. */
struct tec_suite_engine {
    struct tec_invocation call; /* ours, with what we set */
    struct tec_opened opened;
    struct tec_arena arena;
    bool open;
    size_t n_values;
    struct tec_value values[TEC_SUITE_INPUTS][TEC_BENCH_INPUTS][TEC_SUITE_VALUES];
    struct tec_frame_input input[TEC_BENCH_INPUTS]; /* of the last tec_suite_show */
};

/* Open `file` for S steps with `threads` lanes (0: as the call says). */
enum tec_status tec_suite_open(struct tec_suite_engine *e, struct tec_suite *suite,
                               const char *file, int S, int threads, struct tec_error *err);
void tec_suite_close(struct tec_suite_engine *e);

/* Make its three inputs those of a kind. */
enum tec_status tec_suite_show(struct tec_suite_engine *e, enum tec_suite_input kind,
                               struct tec_error *err);

/* Bytes of the plan of `file` with `seats` requests, without taking them. */
enum tec_status tec_suite_measure(int64_t *bytes, struct tec_suite *suite, const char *file,
                                  int seats, struct tec_error *err);

#endif
