/* misses.h - deadlines that a policy's decisions missed, counted over the guard's window. */
#ifndef TEC_POLICIES_HOST_MISSES_H
#define TEC_POLICIES_HOST_MISSES_H

#include "graph/run/launch/planner.h"

enum { TEC_MISS_PARTS = 16 };

/* The window moves on by a part of it. All zero: nothing was counted yet. */
struct tec_misses {
    int parts;  /* that are full */
    int at;     /* the one that is being filled */
    int frames; /* in it */
    int missed; /* in it */
    int sum;    /* missed in the full ones */
    int history[TEC_MISS_PARTS];
};

/* Frames that the window holds: `window` or a few more, so that its parts are equal. */
int tec_misses_window(int window);

/* Count a frame. With every part of a full window, the frames of it that were missed because of
 * plan or policy, when they are more than half of it; else 0. Causes gpu, host and input never
 * count. */
int tec_misses_add(struct tec_misses *misses, int window, const struct tec_frame_result *result);

#endif
