/* executor.h - what the frame loop asks of whoever runs launches: the device's captures, or a fake
 * clock advanced by a cost table. The loop does not know which one it drives. */
#ifndef TEC_GRAPH_RUN_LAUNCH_EXECUTOR_H
#define TEC_GRAPH_RUN_LAUNCH_EXECUTOR_H

#include "base/clock.h"
#include "graph/run/launch/events.h"
#include "graph/run/launch/launch_score.h"
#include "graph/run/launch/launch_verify.h"
#include "graph/run/launch/text_edges.h"

/* A prompt of its own of a decode task: read behind the frame's prefix. n 0: none. */
struct tec_request_prompt {
    const int *ids;
    int n; /* at most the plan's spec.prompt_tokens */
};

struct tec_memory_prompt;
struct tec_decision;
struct tec_frame_view;

/* Who makes a prompt of a text that is said in the frame of the observation. Called on the frame
 * thread while the input is the running frame's. make: of n tokens of the text's model, to where
 * prefix.ids points; how many ids, or 0 where none could be made, with the reason and its place in
 * `err`, and those stay that are there. NULL: nobody. */
struct tec_prompt_maker {
    int (*make)(void *self, const int *tokens, int n, struct tec_error *err);
    void *self;
};

/* What a chain reads of an observation. Noise and state are for chains with actions. */
struct tec_chain_input {
    struct tec_prefix_input prefix; /* n_text 0: nothing was given */
    /* Of all texts as they were given, and of each in the order of the prefill's `reads`: equal
     * texts, equal keys. */
    uint64_t keys[1 + TEC_MAX_TEXTS];
    struct tec_text_read reads[TEC_MAX_TEXTS]; /* versions of its streams; behind them stream 0 */
    struct tec_prompt_maker maker;             /* where the prompt waits for a newer text */
    struct tec_memory_prompt *memory; /* the prompt is of remembered segments; or NULL. One that is
                                       * waited for is taken out, another room put in its place */
    /* Of each of its action nodes: [horizon, dim], whose first n_fixed rows are given actions, 0 ..
     * the plan's spec.fixed. */
    const float *noise[TEC_MAX_ACTIONS];
    int n_fixed[TEC_MAX_ACTIONS];
    /* What the chunk is pulled to, as of struct tec_action_inputs. */
    const float *previous[TEC_MAX_ACTIONS], *pulls[TEC_MAX_ACTIONS];
    int n_previous[TEC_MAX_ACTIONS];
    const float *state; /* [tec_model_state] normalised, padded */
};

/* What a prefill reads that has waited for a text of its frame. */
struct tec_late_input {
    int64_t opened; /* the frame, counted on */
    struct tec_chain_input in;
};

/* A text that no prompt could be made of, so that the one before it was read. */
struct tec_unread {
    const char *why; /* with its place; NULL = there is none */
    int stream;
    int64_t request;
};

/* One observation, ready for the device; everything is borrowed until the frame has ended. */
struct tec_frame_input {
    struct tec_chain_input chains[TEC_MAX_CHAINS];      /* in the order of the loop's */
    int64_t captured_ns;                                /* when the cameras saw it, frame clock */
    struct tec_request_prompt prompts[TEC_MAX_PROMPTS]; /* tec_pipeline_prompt_of */
    struct tec_unread unread;
    int64_t episode; /* a reset begins the next one: texts of streams are of one episode */
};

/* --- launches --------------------------------------------------------------------------------- */

enum tec_launch_kind {
#define LAUNCH(name) TEC_LAUNCH_##name,
#include "graph/run/launch/launches.def"
#undef LAUNCH
    TEC_LAUNCH_COUNT
};

/* An observation, and the region that its prefix goes to. */
struct tec_observed {
    int region;
    const struct tec_chain_input *input;
    bool known; /* the rows of its pictures are those that its model kept last */
};

/* n observations, at most tec_plan_together of the plan. */
struct tec_prefix_launch {
    const struct tec_observed *each; /* [n] */
    int n;
    bool acts; /* and the action node that goes with the prefill, where there is one */
    bool more; /* others of its frame and chain follow: not all prefixes are there behind it */
};

/* What became of a slice: done; not possible yet, and nothing was done; the prefill begins again.
 */
enum tec_slice { TEC_SLICE_DONE, TEC_SLICE_LATER, TEC_SLICE_AGAIN };

/* Slice `at` of a prefill that is not in frames; the input is the same for all of them. */
struct tec_slice_launch {
    struct tec_observed of;
    int at;
    enum tec_slice state; /* out */
};

/* An action node, `at` of its chain's, over `rows` of a prefix in a region, and where it acts on a
 * text over the `text` tokens behind it, whose keys are in the slots from `tail` on. */
struct tec_action_launch {
    int at, region, rows, text, tail;
    const struct tec_chain_input *input; /* noise and given actions */
    const float *state;                  /* of the prefix's observation */
};

/* n requests by up to k tokens, as of tec_launch_decode. */
struct tec_decode_launch {
    struct tec_row_state *const *rows; /* [n] */
    int n, k;
    int *tokens, *made; /* out: [n, k], [n] */
    int drafted, kept;  /* out: tokens that a draft proposed; of these what was said */
};

struct tec_verify_launch {
    struct tec_verify_row *rows; /* [n] */
    int n;
};

/* One forward of rings: the prefills of new sequences, and a row of each other one; with moves
 * where the executor `shifts`.
 * `tokens` gets the next of each, in the order of the rows; the states are as after a decode. */
struct tec_ring_launch {
    struct tec_ring_rows in;
    int *tokens; /* [in.entering + in.n] */
};

/* Moves between regions, each region at most once. */
struct tec_shift_launch {
    const struct tec_ring_move *moves;
    int n;
};

struct tec_launch {
    enum tec_launch_kind kind;
    struct tec_replay replay; /* in: who listens to marks; out: status and times */
    bool after_prefill;       /* of `start`: not before the frame's own prefill has ended */
    union {
        struct tec_prefix_launch prefix;
        struct tec_slice_launch slice;
        struct tec_action_launch action;
        struct tec_decode_launch decode;
        struct tec_verify_launch verify;
        struct tec_score_launch score;
        struct tec_ring_launch packed;
        struct tec_shift_launch shift;
    };
};

/* Of one chain. All members are called on the frame thread. */
struct tec_executor {
    void *self;
    struct tec_clock clock;
    bool together; /* several observations may be one launch */
    bool verifies; /* `verify` may be launched; false: requests advance by decode alone */
    bool shifts;   /* keys of a ring move in its forwards; false: in launches behind them */
    /* Run it to its end. */
    void (*launch)(void *self, struct tec_launch *launch);
    /* The chunk that action node or prefix, the newest launch of its kind, has made of its
     * observation i: [horizon, dim]. */
    void (*chunk)(void *self, const struct tec_launch *launch, int i, float *chunk);
    /* Start launches of requests, one after the other, on a partition of their own beside what is
     * launched next; they are the executor's until `wait`. NULL: there is one partition. */
    void (*start)(void *self, struct tec_launch *launches, int n);
    void (*wait)(void *self);
    /* CPU time that the launches' threads, and maybe others, have had so far: what shows that the
     * whole program stood still. NULL: launches need none of it, or time is not real. */
    int64_t (*ran)(void);
    /* Wait until the inputs are here; NULL: they are when a frame is run. */
    void (*await)(void *self, int64_t until_ns);

    /* Of a chain with memories, which are their first argument; NULL where there are none. A frame
     * is over: until then there is time for other work. */
    void *memory;
    void (*idle)(void *memory, int64_t until_ns);
    /* Nobody wants the rest of a prefill that is begun. */
    void (*give_up)(void *memory);
    /* The frame's decision about a prompt of segments, before its first launch: they are the view's
     * from `first` on, -1 = it has not seen them. */
    void (*recompute)(void *memory, const struct tec_decision *decision,
                      const struct tec_memory_prompt *prompt, int first);
    void (*report)(void *memory, struct tec_frame_view *view); /* added to what policies see */
};

static inline void tec_executor_launch(const struct tec_executor *e, struct tec_launch *launch)
{
    e->launch(e->self, launch);
}

/* Replay the part of the plan that this launch needs, of its second set with `beside`: what a real
 * executor does. */
void tec_launch_run(struct tec_plan *plan, bool beside, struct tec_launch *launch);

/* Runs captures of a plan on its device. */
struct tec_executor tec_executor_real(struct tec_plan *plan);

/* A device that only spends time, on a fake clock. Actions are 0, tokens count up from 3. Launches
 * take fixed times, or what `took` says. */
struct tec_virtual {
    int chain;             /* of the engine */
    int64_t *clock_ns;     /* the fake clock */
    struct tec_plan *plan; /* for its sizes; no capture is run */
    int64_t prefill_ns, action_ns, step_ns;
    double contention; /* partitions that work at once slow each other; 0 = 1 */
    void *user;
    /* Nanoseconds of a launch (a mark of its kind), of `rows` rows by k steps; PACKED: a
     * forward of rings, by its point; SHIFT: of so many tokens, one way; PREFILL: of `rows`
     * observations; ACTION: of action node `rows` of the chain's for k of them. NULL: as above. */
    int64_t (*took)(void *user, int chain, int mark, int rows, int k);
    /* Which token of a request is its end token, from 1; 0 = none. NULL: none. */
    int (*end)(void *user, int64_t request);
    struct tec_launch *started; /* beside; NULL = none */
    int n_started;
    int64_t joined_ns; /* when they end */
};
struct tec_executor tec_executor_virtual(struct tec_virtual *device);

#endif
