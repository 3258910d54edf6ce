/* view.h - what policies see of a frame: requests, caches, costs and the slack. */
#ifndef TEC_GRAPH_RUN_LOOP_VIEW_H
#define TEC_GRAPH_RUN_LOOP_VIEW_H

#include "graph/run/loop/state.h"

void tec_loop_prepare_view(struct tec_loop *l);
void tec_loop_view(struct tec_loop *l);
struct tec_request_view tec_loop_view_of(const struct tec_loop *l, const struct tec_request *r);

#endif
