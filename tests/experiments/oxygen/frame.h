/* frame.h - one frame of an experiment: its arrivals, its launches, who finished. */
#ifndef TEC_TESTS_EXPERIMENTS_OXYGEN_FRAME_H
#define TEC_TESTS_EXPERIMENTS_OXYGEN_FRAME_H

#include "tests/experiments/oxygen/engines.h"

enum { TEC_OXYGEN_OPEN_REQUESTS = 4096 };

/* Requests that were seen and have not ended. */
struct tec_oxygen_open_request {
    int64_t id;
    int arrival;
    int64_t born_ns;
};

/* A block of frames of one point on one engine. */
struct tec_oxygen_block {
    struct tec_oxygen_engine *engine;
    struct tec_oxygen_point *point;
    struct tec_planner planner;
    struct tec_arrivals arrivals;
    int next_session; /* together: whose the next arrival is */
    int n_open;
    struct tec_oxygen_open_request open[TEC_OXYGEN_OPEN_REQUESTS];
};

/* Frame `index` of the block, counted from its warm-up. With n arrivals: n observations, and one
 * decoding for everybody at the end. Together they are a launch of prefill and actions, else each
 * has its own, and language of the first n - 1 waits for the last. Without arrivals: decoding
 * alone. */
void tec_oxygen_run_frame(struct tec_oxygen_block *block, int index, bool warmup);

#endif
