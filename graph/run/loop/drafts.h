/* drafts.h - requests whose tokens a second model proposes. */
#ifndef TEC_GRAPH_RUN_LOOP_DRAFTS_H
#define TEC_GRAPH_RUN_LOOP_DRAFTS_H

#include "graph/run/loop/state_pending.h"

/* Its prefill has run. */
void tec_draft_start(struct tec_loop *l, struct tec_request *r, const struct tec_pending_prefill *a,
                     int64_t at_ns);
void tec_draft_end(struct tec_loop *l, struct tec_request *r, int64_t at_ns);
/* Run a job of requests that have drafts: every row advances as by k steps of decode. */
void tec_drafts_run(struct tec_loop *l, struct tec_launch *job, const int *rows);
void tec_drafts_warm(struct tec_loop *l);

#endif
