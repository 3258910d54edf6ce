/* paced.h - frames at the pipeline's period on the real clock. A frame thread prepares inputs and
 * runs frames; the caller's thread keeps the ticks and hands out each tick's actions by its
 * deadline, whatever the frame thread is doing.
 *
 * A tick that finds the frame before it unfinished opens no frame (overrun = "skip_next"): its
 * number and its inputs are used up, and it misses. */
#ifndef TEC_TOOLS_FRAMES_PACED_H
#define TEC_TOOLS_FRAMES_PACED_H

#include "tools/frames/frames.h"
#include "tools/frames/noise_file.h"

/* What the robot was given of one action node in a tick. */
struct tec_paced_given {
    int64_t deadline_ns;
    enum tec_action_source source;
    int rows, columns;
    double *actions; /* [rows, columns] of the robot */
    int64_t handed_ns;
    int64_t age_ns; /* age of the observation that the actions come from; -1 = none */
    struct tec_beyond
        beyond;    /* of the tick's own actions; held or stopped where they were refused */
    bool left_out; /* the frame leaves the action out: what is given is no miss */
};

/* What a session's robot was given in a tick, and the frame that it opened. */
struct tec_paced_tick {
    int64_t frame, tick_ns;
    int session;
    int n;                         /* action nodes */
    struct tec_paced_given *given; /* [n]; the first is there always */
    bool missed; /* some are not the tick's own, or the frame ended after the next tick */
    enum tec_cause cause;
    const struct tec_frame_out *out; /* NULL: the tick was skipped */
};

struct tec_paced_counts {
    int64_t ticks, skipped, missed; /* of each session */
    int64_t causes[TEC_CAUSES];
    int64_t beyond; /* ticks with actions beyond the limits, clipped ones too */
    int64_t left_out,
        stopped; /* ticks whose frame leaves an action out; in which the robot is stopped */
};

struct tec_paced_options {
    struct tec_frames *frames;               /* of tec_frames_open_paced */
    struct tec_inputs *const *inputs;        /* of each session */
    struct tec_noise_file *noise;            /* NULL, or not opened: none */
    int actions;                             /* a tick; 0 = all rows */
    const struct tec_scheduling *scheduling; /* of the threads that compute; who hands out comes
                                              * before them. NULL: as others */
    int64_t most;                            /* ticks */
    const bool *over; /* `tell` may set it: there shall be no further tick; or NULL */
    /* Called for each tick of each session when it is over, on the caller's thread and in the order
     * of ticks: a
     * tick that ran when its frame has ended, a skipped one at once. A failure ends the run. */
    enum tec_status (*tell)(void *user, const struct tec_paced_tick *tick, struct tec_error *err);
    void *user;
};

/* Run ticks until the inputs of a session end, or `most` of them. The first failure of an input or
 * of `tell` ends the run. */
enum tec_status tec_paced_run(const struct tec_paced_options *options,
                              struct tec_paced_counts *counts, struct tec_heap *heap,
                              struct tec_error *err);

#endif
