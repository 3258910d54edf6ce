/* slices.h - the slices of prefills that are not in frames. */
#ifndef TEC_GRAPH_RUN_LOOP_SLICES_H
#define TEC_GRAPH_RUN_LOOP_SLICES_H

#include "graph/run/loop/state.h"

/* One that a hard text waits for goes in (-1: none), once a frame. */
void tec_slices_first(struct tec_loop *l, int pending);

#endif
