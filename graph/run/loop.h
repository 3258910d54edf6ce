/* loop.h - the frame loop: one observation in, actions out the moment they are ready, language in
 * what is left. The order of a frame is that of Algorithm 1 of OxyGen: prefill and action, then
 * store, batch, advance, unbatch, update or remove.
 *
 * Owned by the frame thread. After create nothing allocates, locks or blocks. */
#ifndef TEC_GRAPH_RUN_LOOP_H
#define TEC_GRAPH_RUN_LOOP_H

#include "graph/run/costs.h"
#include "graph/run/executor.h"
#include "graph/run/planner.h"

#include <stdatomic.h>

enum { TEC_MAX_LAUNCHES = 2 + 2 * TEC_MAX_ROWS, TEC_MAX_DECODERS = 8 };

/* One language task of the pipeline: a decode node. */
struct tec_decoder {
    const char *name;
    int node;  /* index into the topology */
    int every; /* spawn a request every so many frames; 0 = only when asked */
    int max_tokens;
    int64_t deadline_us; /* after it is born; 0 = none */
};

/* A request's text, for one reader. Tokens are stored, then `count` is published (release). */
struct tec_utterance {
    int64_t id;
    int decoder;
    int64_t frame;           /* that it was born in */
    _Atomic int count, done; /* done: 1 by end or length, 2 shed */
    const char *reason;      /* set before done: "eos", "length", or why it was shed */
    int *tokens;             /* [max_tokens] */
    int64_t finished_ns;
};

/* What one frame did. Times on the frame clock, nanoseconds; -1 = did not happen. */
struct tec_launch_record {
    const char *node;
    int rows, batch, k;
    int64_t request; /* private prefill: whose; else -1 */
    int64_t start_ns, end_ns;
};

struct tec_frame_record {
    int64_t frame, tick_ns, start_ns, end_ns, release_ns, deadline_ns;
    int64_t age_us;     /* of the observation when its actions left; -1 = no actions */
    int64_t slack_us;   /* until the deadline when the actions left */
    int64_t planner_ns; /* views, policy, snapping */
    int64_t host_ns;    /* everything that was not a replay */
    bool missed;
    enum tec_cause cause;
    int tokens, rows, in_flight, snapped, refused, shed;
    int n_launches;
    struct tec_launch_record launches[TEC_MAX_LAUNCHES];
};

struct tec_loop_options {
    struct tec_plan *plan;               /* borrowed */
    const struct tec_topology *topology; /* borrowed */
    struct tec_executor executor;
    struct tec_planner planner;
    int n_decoders;
    struct tec_decoder decoders[TEC_MAX_DECODERS];
    int prefill_node, action_node; /* topology indices; -1 = none */
    int64_t period_ns;             /* 0: saturated */
    int64_t deadline_ns;           /* of the action, after the tick; 0 = none */
    /* Called on the frame thread the moment the actions are ready; must not block. */
    void (*released)(void *user, const float *chunk, const struct tec_frame_record *record);
    void *user;
};

struct tec_loop;

enum tec_status tec_loop_create(struct tec_loop **out, const struct tec_loop_options *options,
                                struct tec_heap *heap, struct tec_error *err);
void tec_loop_destroy(struct tec_loop *loop); /* NULL is allowed */

/* Take over another planner from the next frame on. */
void tec_loop_set_planner(struct tec_loop *loop, const struct tec_planner *planner);

/* Run one frame, opened at `tick_ns`. `input` NULL: no observation; live language goes on. What is
 * given fits the plan: a session's input does, any other has passed tec_prefix_check. `spawn`
 * is a bit set of decoders that are asked for a request besides their own spawning. The record is
 * the loop's, valid until the next frame. */
const struct tec_frame_record *tec_loop_frame(struct tec_loop *loop,
                                              const struct tec_frame_input *input, int64_t tick_ns,
                                              unsigned spawn);

/* Requests that still have tokens to make. */
int tec_loop_live(const struct tec_loop *loop);

/* Drop every request, as after a change of policy between runs; costs stay. */
void tec_loop_reset(struct tec_loop *loop);

/* Texts: two records a seat and two more; the one that ended first is used again first, so a text
 * that ended is there for at least one more frame. Its count and done may be read from any thread,
 * the rest of a record by a reader that is done with it before the next frame begins. */
int tec_loop_utterances(const struct tec_loop *loop);
const struct tec_utterance *tec_loop_utterance(const struct tec_loop *loop, int i);

/* Measured costs; the loop adds to them. */
struct tec_costs *tec_loop_costs(struct tec_loop *loop);

/* Replay every part at its largest counts a few times, so that costs are known before frame 0. */
void tec_loop_warm(struct tec_loop *loop, const struct tec_frame_input *input, int times);

#endif
