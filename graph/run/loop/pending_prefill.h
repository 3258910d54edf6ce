/* pending_prefill.h - prefills that are not in frames: who waits, how far they are. */
#ifndef TEC_GRAPH_RUN_LOOP_PENDING_PREFILL_H
#define TEC_GRAPH_RUN_LOOP_PENDING_PREFILL_H

#include "graph/run/loop/state_pending.h"

/* Of chains that hold theirs: an observation has come, before its requests. */
void tec_pending_prefills_begin(struct tec_loop *l);
/* Is there one that a request could join? */
bool tec_pending_prefill_there(const struct tec_loop *l, int chain);
void tec_pending_prefills_drop(struct tec_loop *l); /* the session's that are held */
void tec_pending_prefill_join(struct tec_loop *l, struct tec_request *r); /* at its birth */
void tec_pending_prefill_leave(struct tec_loop *l, struct tec_request *r, int64_t at_ns);
/* What it waits for, its own before its draft's; NULL: nothing. */
const struct tec_pending_prefill *tec_pending_prefill_of(const struct tec_loop *l,
                                                         const struct tec_request *r);
int tec_pending_prefill_left(const struct tec_loop *l, const struct tec_request *r); /* slices */
void tec_pending_prefill_plan(struct tec_loop *l); /* which slices run in this frame */
/* Does a request, or its draft, wait for it? The row of the first that does, in the order of
 * launches; -1 = none. */
bool tec_pending_prefill_is_of(const struct tec_loop *l, const struct tec_request *r,
                               const struct tec_pending_prefill *a);
int tec_pending_prefill_row(const struct tec_loop *l, const struct tec_pending_prefill *a);
/* The observation as it was kept. */
struct tec_chain_input tec_pending_prefill_input(const struct tec_pending_prefill *a);
/* A request, or its draft, waits no more: `pending` of either becomes -1. */
void tec_pending_prefill_had(struct tec_loop *l, int *pending, int64_t at_ns);
/* Has it a prefix by the time that language runs? */
bool tec_pending_prefill_ready(const struct tec_loop *l, const struct tec_request *r);
/* The segments of that prefill of a chain which is begun next for a session (-1: for any); NULL:
 * there are none. */
const struct tec_memory_prompt *tec_pending_prefill_memory(const struct tec_loop *l,
                                                           const struct tec_chain *c, int session);

#endif
