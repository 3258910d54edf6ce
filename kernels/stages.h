/* stages.h - work in stages, one behind the other, whose parts go to the lanes that are there.
 *
 * A lane does its own part of a stage first. A lane that has nothing to do looks for parts that
 * nobody has begun, as their lanes are late: asleep, or without a processor. So a lane is waited
 * for only while it is in the middle of a part. */
#ifndef TEC_KERNELS_STAGES_H
#define TEC_KERNELS_STAGES_H

#include "base/bell.h"

#include <stdbool.h>

/* What is to be done, the same for every lane that joins. Stages are named by numbers >= 0. */
struct tec_stage_work {
    int parts;                                 /* of each stage; 1 .. as many as there are claims */
    void (*run)(void *user, int at, int part); /* a part of stage `at` */
    int (*next)(void *user,
                int at); /* when all parts of `at` are done: the next one; -1: no more */
    bool (*held)(void *user, int at); /* part 0 of `at` is for lane 0 and no other */
    void *user;
};

/* That a part was begun. */
struct tec_claim {
    _Alignas(64) _Atomic uint64_t begun; /* the last stage whose part of this number was */
    _Atomic int processor;               /* where it is being done, counted from 1; 0: it is not */
};

struct tec_stages {
    _Alignas(64) _Atomic uint64_t stage; /* counts them, over all that is ever done */
    _Atomic int at;
    struct tec_bell bell;          /* rung when a stage begins, and when there are no more */
    _Alignas(64) _Atomic int done; /* parts of this stage */
    struct tec_claim *claims;      /* one for each part, zeroed at the start; the caller's */
};

/* How long a lane spins for others before it sleeps: about what it takes to wake it. */
enum { TEC_LANE_SPIN_NS = 50000 };

/* Before lanes join, and when none of an earlier time is left: stage `at` is the first. */
void tec_lanes_begin(struct tec_stages *stages, int at);

/* Take part until the last stage is done. Sleeps, after a while of spinning, only while another
 * lane is in the middle of a part. Any lane but 0 may be missing. */
void tec_lanes_join(struct tec_stages *stages, const struct tec_stage_work *work, int lane);

#endif
