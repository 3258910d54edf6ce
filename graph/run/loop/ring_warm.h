/* ring_warm.h - rings' launches before the first frame. */
#ifndef TEC_GRAPH_RUN_LOOP_RING_WARM_H
#define TEC_GRAPH_RUN_LOOP_RING_WARM_H

#include "graph/run/loop/state.h"

/* Every launch of the rings that share a chain's plan once, and what the costs learn of it. */
void tec_rings_warm(struct tec_loop *l, const struct tec_chain *c,
                    const struct tec_frame_input *input);

#endif
