/* schedule.h - the one loop that launches what a frame runs. */
#ifndef TEC_GRAPH_RUN_LOOP_SCHEDULE_H
#define TEC_GRAPH_RUN_LOOP_SCHEDULE_H

#include "graph/run/loop/items.h"

/* A frame's items: those of its hard chains, then of language; until none is ready. */
void tec_schedule_run(struct tec_loop *l);

#endif
