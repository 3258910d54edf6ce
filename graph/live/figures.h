/* figures.h - what a running robot has done so far, as numbers that only grow and histograms: for
 * monitoring. The frame thread counts, other threads read; nothing locks, waits or allocates.
 *
 * Every number is atomic by itself; a reader may see one of a frame before another. */
#ifndef TEC_GRAPH_LIVE_FIGURES_H
#define TEC_GRAPH_LIVE_FIGURES_H

#include "graph/run/launch/events.h"

#include <stdatomic.h>

/* Upper ends of the buckets in seconds; behind the last one there is one more without an end. */
#define TEC_FIGURE_BUCKETS                                                          \
    {                                                                               \
        0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0 \
    }
enum { TEC_FIGURE_BUCKET_COUNT = 13 };
extern const double tec_figure_buckets[TEC_FIGURE_BUCKET_COUNT];

struct tec_figure_times {
    _Atomic int64_t counts[TEC_FIGURE_BUCKET_COUNT + 1]; /* in each bucket alone */
    _Atomic int64_t sum_ns;
};

/* Zeroed: nothing has happened. */
struct tec_figures {
    _Atomic int64_t frames, missed[TEC_CAUSES]; /* missed: by cause */
    _Atomic int64_t tokens, snapped;            /* language; decisions that were moved */
    _Atomic int64_t arrived, admitted, refused, shed, finished, cancelled; /* requests */
    _Atomic int64_t released, late;                                        /* chunks of actions */
    _Atomic int64_t left_out;             /* actions that a frame's decision left out */
    _Atomic int64_t unread;               /* texts that no prompt could be made of */
    _Atomic int64_t in_flight, batch;     /* now: requests that are alive, rows decoded last */
    struct tec_figure_times frame, age;   /* age: of the observation when its actions left */
    struct tec_figure_times wait;         /* from the tick until its inputs were there */
    struct tec_figure_times policy, host; /* of each frame */
    struct tec_figure_times nodes[TEC_MAX_NODES]; /* of each launch, by the topology's nodes */
};

/* Frame thread: the sink of a loop's events. */
void tec_figures_count(struct tec_figures *f, const struct tec_event *event);

#endif
