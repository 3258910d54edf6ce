/* prefix.h - the prefix of a chain in frames. */
#ifndef TEC_GRAPH_RUN_LOOP_PREFIX_H
#define TEC_GRAPH_RUN_LOOP_PREFIX_H

#include "graph/run/loop/state.h"

/* The frame's observation is the chain's prefix, in that region. */
void tec_loop_open_prefix(struct tec_loop *l, struct tec_chain *c,
                          const struct tec_frame_input *input, int region);
/* Is the chain prefilled in this frame? */
bool tec_loop_prefills(const struct tec_loop *l, const struct tec_chain *c);
/* Its region is given back. */
void tec_loop_drop_prefix(struct tec_loop *l, struct tec_chain *c);

#endif
