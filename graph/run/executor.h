/* executor.h - what the frame loop asks of whoever runs launches: the device's captures, or a fake
 * clock advanced by a cost table. The loop does not know which one it drives. */
#ifndef TEC_GRAPH_RUN_EXECUTOR_H
#define TEC_GRAPH_RUN_EXECUTOR_H

#include "base/clock.h"
#include "graph/run/launch.h"

/* One observation, ready for the device; everything is borrowed until the frame has ended. */
struct tec_frame_input {
    struct tec_prefix_input prefix;
    const float *noise;  /* [horizon, dim]; its first n_fixed rows are given actions */
    int n_fixed;         /* 0 .. the plan's spec.fixed */
    const float *state;  /* [dim] normalised, padded */
    int64_t captured_ns; /* when the cameras saw it, frame clock */
};

/* All members are called on the frame thread; replay gets the times. */
struct tec_executor {
    void *self;
    struct tec_clock clock;
    void (*prefix)(void *self, enum tec_part_kind kind, int region,
                   const struct tec_frame_input *input, struct tec_replay *replay);
    void (*actions)(void *self, float *chunk); /* of the last FRAME launch: [horizon, dim] */
    void (*decode)(void *self, struct tec_row_state *const *rows, int n, int k, int *tokens,
                   int *made, struct tec_replay *replay);
};

/* Runs captures of a plan on its device. */
struct tec_executor tec_executor_real(struct tec_plan *plan);

/* Advances *clock_ns by fixed costs and makes up results: actions 0, tokens counting up from 3,
 * end tokens never. */
struct tec_virtual_costs {
    int64_t *clock_ns; /* the fake clock */
    int64_t prefill_ns, action_ns, step_ns;
    struct tec_plan *plan; /* for its sizes; no capture is run */
};
struct tec_executor tec_executor_virtual(struct tec_virtual_costs *costs);

#endif
