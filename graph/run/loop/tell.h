/* tell.h - what a frame does, told to the sink of events. */
#ifndef TEC_GRAPH_RUN_LOOP_TELL_H
#define TEC_GRAPH_RUN_LOOP_TELL_H

#include "graph/run/loop/state.h"

/* Give the sink an event of this frame; nothing without a sink. */
void tec_loop_tell(const struct tec_loop *l, struct tec_event event);

/* What is done to a cache (`from`: of another; -1 = none), to that of a request. */
void tec_loop_tell_cache(const struct tec_loop *l, const char *what, int kv, int from,
                         int64_t request, int tokens, int64_t at_ns);
void tec_loop_tell_kv(const struct tec_loop *l, const char *what, const struct tec_request *r,
                      int tokens, int64_t at_ns);
/* Of a chain's prefix, which no request has for itself. */
void tec_loop_tell_prefix(const struct tec_loop *l, const char *what, const struct tec_chain *c,
                          int tokens, int64_t at_ns);

/* Tell that work started and ended: `of` has what START says of it, and what END says of drafts.
 * And of a node's launch, which is noted. */
void tec_loop_tell_run(const struct tec_loop *l, struct tec_event of, int64_t start_ns,
                       int64_t end_ns);
void tec_loop_tell_launch(struct tec_loop *l, struct tec_event of, int batch, int64_t start_ns,
                          int64_t end_ns);

/* A launch of n requests (`ids`) of a decode node: their keys are read, batched and written back.
 * Of `of` the node, requests, n and what START says are set. */
void tec_loop_tell_batch(struct tec_loop *l, struct tec_event of, const struct tec_replay *replay,
                         const struct tec_chain *c);
void tec_loop_tell_unbatch(const struct tec_loop *l, int node, const int64_t *ids, int n,
                           int64_t at_ns);
/* Both, of a launch that made no text. */
void tec_loop_tell_rows(struct tec_loop *l, const struct tec_replay *replay, const int64_t *ids,
                        int n, int node);

/* A launch in the frame's record; one more than it has room for takes the place of the last. */
struct tec_launch_record *tec_loop_note(struct tec_loop *l, const char *node, int64_t start_ns,
                                        int64_t end_ns);

/* "" for -1. */
const char *tec_loop_node_name(const struct tec_loop *l, int node);

#endif
