/* state.h - between the files of the frame loop: what a run changes. Owned by the frame thread. */
#ifndef TEC_GRAPH_RUN_STATE_H
#define TEC_GRAPH_RUN_STATE_H

#include "graph/run/loop.h"

/* A live language request. */
struct tec_request {
    int64_t id;
    int decoder, seat, text; /* text: index of its record */
    int max, made, prio;
    int64_t born_ns, deadline_ns, born_frame; /* deadline INT64_MAX: none */
    bool stored, shared;
    struct tec_row_state row;
};

struct tec_loop {
    struct tec_loop_options o;
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_costs costs;
    bool warming; /* what is measured is no frame's */
    int64_t frame, next_id;
    int n_live;                   /* requests[0 .. n_live - 1], ascending id */
    struct tec_request *requests; /* [seats] */
    bool *seat_taken;             /* [seats] */
    struct tec_utterance *texts;  /* [n_texts] */
    int n_texts;
    int64_t n_ended, *text_ended; /* [n_texts] when it ended, as a count; 0 = not yet used */
    float *chunk;                 /* [horizon, dim] */
    int *tokens, *made;           /* of one launch: [seats, max_k], [seats] */
    int region;                   /* the frame's prefix, -1 = none */
    int prefix_rows, last_token;
    struct tec_frame_record record;
    struct tec_frame_view view;
    struct tec_request_view *view_rows; /* [seats] */
    struct tec_kv_view kv[2];
    struct tec_decision decision, scratch;
    struct tec_frame_result result;
    int64_t replayed_ns;    /* device time of this frame */
    int64_t device_over_ns; /* of it, beyond the p99 known before */
};

static inline int64_t tec_loop_now(const struct tec_loop *l)
{
    return tec_clock_now(&l->o.executor.clock);
}

/* requests.c: the manager's six operations on requests (store, retrieve, update, remove; batching
 * is a list of rows), admission, texts. */
void tec_requests_expire(struct tec_loop *l);
void tec_requests_spawn(struct tec_loop *l, int decoder);
void tec_requests_store(struct tec_loop *l, struct tec_request *r, int region);
void tec_requests_update(struct tec_loop *l, struct tec_request *r, const int *tokens, int n);
void tec_requests_finish(struct tec_loop *l, int index, const char *reason, int how);
void tec_requests_sweep(struct tec_loop *l); /* removes those that are done */
void tec_loop_view(struct tec_loop *l);      /* what policies see of them */

/* loop.c: the policy's decision for this frame. */
void tec_loop_plan(struct tec_loop *l);

/* account.c: costs, misses, the frame's result. */
void tec_loop_account(struct tec_loop *l);
void tec_loop_measure_prefix(struct tec_loop *l, const struct tec_replay *r, bool action);
void tec_loop_measure_decode(struct tec_loop *l, const struct tec_replay *r, int rows, int steps);

#endif
