/* loop_frame.h - the next frame of a loop of one session, in one call. */
#ifndef TEC_TESTS_LOOP_FRAME_H
#define TEC_TESTS_LOOP_FRAME_H

#include "graph/run/loop/loop.h"

/* tec_loop_run of the tick at `tick_ns`. Without input no request starts. */
static inline const struct tec_frame_record *loop_frame(struct tec_loop *loop,
                                                        const struct tec_frame_input *input,
                                                        int64_t tick_ns, unsigned spawn)
{
    struct tec_tick tick = tec_loop_tick(loop, tick_ns, spawn);
    return tec_loop_run(loop, input, &tick);
}

#endif
