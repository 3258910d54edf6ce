/* requests.h - what is done with language requests: admission, then store, retrieve, update and
 * remove (batching is a list of rows), and the texts that they leave. */
#ifndef TEC_GRAPH_RUN_LOOP_REQUESTS_H
#define TEC_GRAPH_RUN_LOOP_REQUESTS_H

#include "graph/run/loop/state.h"

bool tec_requests_cancel(struct tec_loop *l, int64_t id); /* whether it was alive */
void tec_requests_expire(struct tec_loop *l);
void tec_requests_spawn(struct tec_loop *l, int decoder, struct tec_ask *ask); /* ask NULL: own */
/* Its row, on the frame's prefix, one of its own, or the one it waited for, in `region`. */
void tec_requests_start(struct tec_loop *l, struct tec_request *r, int region);
void tec_requests_store(struct tec_loop *l, struct tec_request *r, int region, int64_t at_ns);
/* n tokens of a launch that ended at `at_ns`; the last ones when its row is done. */
void tec_requests_update(struct tec_loop *l, struct tec_request *r, const int *tokens, int n,
                         int64_t at_ns);
/* Its ranking, from how likely each entry of its tree is: it is finished. */
void tec_requests_rank(struct tec_loop *l, struct tec_request *r, const float *likely,
                       int64_t at_ns);
/* Give up: an event says why, the request slot is free after the next sweep. */
void tec_requests_shed(struct tec_loop *l, struct tec_request *r, const char *reason);
void tec_requests_end(struct tec_loop *l, struct tec_request *r, const char *reason, int how,
                      int64_t at_ns);
void tec_requests_sweep(struct tec_loop *l); /* drops those that ended, and their decisions */

#endif
