/* loop.h - the frame loop: one observation in, actions out the moment they are ready, language in
 * what is left. The order of a frame is that of Algorithm 1 of OxyGen: prefill and action, then
 * store, batch, advance, unbatch, update or remove.
 *
 * Owned by the frame thread. After create nothing allocates, locks or blocks. */
#ifndef TEC_GRAPH_RUN_LOOP_LOOP_H
#define TEC_GRAPH_RUN_LOOP_LOOP_H

#include "graph/run/launch/events.h"
#include "graph/run/launch/executor.h"
#include "graph/run/launch/planner.h"
#include "graph/run/loop/cost_table.h"
#include "graph/run/loop/costs.h"

#include <stdatomic.h>

enum { TEC_MAX_LAUNCHES = 2 + 2 * TEC_MAX_ROWS, TEC_MAX_TICKING = TEC_MAX_SESSIONS };

/* One language task of the pipeline: a decode node, or one that ranks texts. */
struct tec_decoder {
    const char *name;
    int node;  /* index into the topology */
    int every; /* spawn a request every so many frames; 0 = not by their number */
    int max_tokens;
    int64_t deadline_us; /* after it is born; 0 = none */
    bool sheds;          /* given up after it */
    bool on_change;      /* spawn one where the instruction is not that of the session's frame
                            before, and in the first of an episode */
    int on_text;         /* 1 + which of the texts that its prefill reads; 0 = any */
    bool supersede;      /* a new request gives up the older ones of its session */
    bool keeps_slot;     /* one request slot is there for its requests alone */
    bool awaited;    /* a hard node waits for its texts, or they have a hard deadline themselves:
                      * they are made to their ends in the frame that they are born in */
    bool behind;     /* no hard node waits for them: they come behind their chain's actions, and
                      * behind all that is due before they are */
    bool hard;       /* its deadline is: it counts from the tick, and a later end is a miss */
    bool keeps_keys; /* of its last finished text, in a request slot of each session, for
                      * actions */
    struct tec_texts stops;       /* the first of them that occurs ends an answer; n 0 = none */
    struct tec_sampling sampling; /* of its seed each request's is made */
    const struct tec_token_tree *tree; /* ranks these texts; NULL: decodes */
    bool end, mean;                    /* tree: end tokens are in it; sums by tokens */
    bool chooses;                      /* answers with one of a list, which begins at `root` */
    int root;
    int prompt;            /* 1 + index of its own prompt in the input; 0 = none */
    int stream;            /* 1 + index of its stream where a prefill reads that; 0 = none does */
    int chain;             /* whose keys it reads */
    const char *kv;        /* the view of its texts' keys; NULL: its chain's */
    int first_slot, slots; /* its request slots, of each session's of its chain; slots 0: all */
    int draft;             /* 1 + the chain that proposes its tokens; 0 = none does */
    int draft_tokens;      /* so many at a time */
};

/* A node that reads what a decoder has said, when that is finished; what was given up is not. */
struct tec_text_reader {
    int decoder, node; /* node: index into the topology */
    int at;            /* for the callback: the pipeline's node */
    const char *into;  /* the resource that it writes */
};

/* An action node; of a ring what decodes it. The first one is the robot's: a tick's deadline is
 * its. */
struct tec_action {
    const char *name;
    int node;            /* index into the topology */
    int chain, at;       /* whose keys it reads; which of that chain's action nodes */
    int64_t deadline_ns; /* after the tick; 0 = none */
    int every;           /* runs at each n-th observation of its robot; 0 and 1: at each */
    bool with_prefix;    /* every > 1: instead where its chain is prefilled, which is so often */
    int rows;            /* of its chunk, that the robot carries out a frame: in frames in which it
                          * does not run, those behind them leave */
    bool prev;           /* on the prefix of an earlier frame, not on this one's */
    unsigned texts; /* bit set of decoders, whose newest finished text's keys it reads; 0: it reads
                     * the prefix's */
    bool or_prefix; /* while none is finished it reads the prefix's; else it does not run then */
    int waits_for;  /* 1 + a decoder whose text of this frame is made first; 0 = none */
};

/* A prefill and the nodes that stand on its keys. */
struct tec_loop_chain {
    bool in_frames; /* prefilled in every frame; else when its requests wait for a prefill, in
                     * slices: spec.secondary of its plan */
    int every;      /* its prefill begins in each n-th frame, or of a held one at each n-th
                     * observation of its session; 0 and 1: in each */
    bool on_change; /* instead where a text is not what it was in the newest prefix */
    int on_text;    /* 1 + which of the texts that it reads; 0 = any */
    bool holds;     /* not in frames: until the next one begins, its newest prefill is that of all
                     * requests, and is made when the first of them waits for it */
    struct tec_plan *plan;              /* borrowed */
    struct tec_executor executor;       /* over that plan; all on one clock and device */
    int prefill_node;                   /* topology; -1 = none */
    const char *kv_frame, *kv_requests; /* resources; NULL = none */
    const char *ring;                   /* name of the ring's resource; NULL = the plan has none */
    int ring_at;                        /* which of the plan's rings it is */
    const char *packed, *alone; /* the ring's launches, with prefills and without; NULL = "packed",
                                 * "decode" */
    bool flushes;               /* a new instruction drops what is in flight in the ring */
    struct tec_memory_prompt
        *rooms;     /* [TEC_MAX_PENDING] not in frames, with a memory: its prompts
                     * change places with these; else NULL. The caller drops them */
    int hears;      /* 1 + the stream whose text of this frame its prefill waits for; 0 = none */
    int hears_at;   /* which of the texts that it reads that is */
    int64_t due_ns; /* the earliest deadline of its actions and of chains that wait for its texts,
                     * after the tick; 0 = none */
    int depth;      /* chains of one deadline run in this order, then in theirs */
    bool proposes;  /* it reads for drafts: its request slots are those of the requests that it
                     * proposes to */
};

/* A request from outside. */
struct tec_ask {
    int decoder;
    int max_tokens; /* 0, or more than the decoder's: the decoder's */
    int prio;       /* 0 first: for policies */
    int64_t id;     /* out: the request, also when it is refused */
    bool refused;   /* out */
    char reason[32];
};

/* When a frame opens, and what comes with it. Times on the frame clock. */
struct tec_tick {
    int64_t frame;       /* number of the tick in its session */
    int session;         /* index below TEC_MAX_TICKING; 0 when there is one */
    const char *name;    /* of the session; NULL when there is one */
    int64_t tick_ns;     /* when it was due */
    int64_t deadline_ns; /* of the first action; -1 = none. Others': as the loop's options say */
    int64_t next_ns;     /* its session's next tick; INT64_MAX: frames follow each other */
    int64_t late_ns;     /* inputs come so long after the tick; 0 = they are here */
    int64_t ahead;       /* how much larger `frame` is than the number of the observation among its
                          * robot's: frames of language alone count as frames, observations that no
                          * frame took do not; 0 where every tick is an observation */
    int64_t counted;     /* the number that every(n) of texts counts by: of the session's newest
                          * observation, in its episode */
    unsigned spawn;      /* bit set of decoders that start a request */
    unsigned mute;       /* of those that a change of the instruction starts nothing of */
    bool rests;          /* the session's rings stand still: language goes on alone, without an
                          * observation */
    int n_asks, n_cancels;
    struct tec_ask *asks;   /* [n_asks] */
    const int64_t *cancels; /* [n_cancels] ids of requests */
    bool *cancelled;        /* [n_cancels] out: it was alive; NULL is allowed */
};

/* The number of a tick's observation among its robot's. */
static inline int64_t tec_tick_observation(const struct tec_tick *tick)
{
    return tick->frame - tick->ahead;
}

/* A text of a list: its index there, and the sum or mean of its tokens' log-probabilities. */
struct tec_ranked {
    int index;
    double likely;
};

/* A request's text, for one reader. Tokens are stored, then `count` is published (release). */
struct tec_utterance {
    int64_t id;
    int decoder, session;
    int64_t frame;           /* that it was born in */
    _Atomic int count, done; /* done: 1 by end or length, 2 shed */
    char reason[32];         /* set before done: "eos", "length", "stop", "choice", "ranked", or why
                              * it was given up */
    int *tokens;             /* [max_tokens]; of a ranking the likeliest text's */
    int n_ranked;            /* set before done, too: of a ranking, the likeliest first */
    struct tec_ranked *ranked;
    int64_t finished_ns;
};

/* The record of one frame. Times on the frame clock, nanoseconds; -1 = did not happen. */
struct tec_launch_record {
    const char *node;
    int rows, batch, k; /* rows of hard nodes: observations */
    int64_t request;    /* private prefill: whose; else -1 */
    int64_t start_ns, end_ns;
};

enum { TEC_MAX_READS = TEC_MAX_CHAINS * TEC_MAX_TEXTS }; /* streams that prefills of a frame read */

/* A text that a prefill of this frame read: of a stream, an earlier version. */
struct tec_read_record {
    const char *node, *stream;
    int64_t request, frame; /* whose text, and the frame it was born in; -1 = the default */
    int64_t age_us;         /* since then, at the frame's start; -1 = the default */
};

/* What became of an action node in a frame; of a ring, of the chunk that left last. */
struct tec_action_record {
    int64_t release_ns, deadline_ns;
    int64_t
        seen; /* frame whose observation the chunk is of: its own but in a ring; -1 = none left */
    int64_t captured_ns; /* of that observation; -1 = none left */
    int64_t age_us;      /* of the observation when its chunk left; -1 = none left */
    int64_t slack_us;    /* until the deadline when the chunk left */
    bool missed;         /* it left after the deadline, or was due and did not leave */
    bool left_out;       /* the decision leaves it out of the frame: nothing leaves, and that is no
                          * miss */
    int over; /* rows of the chunk that were over before it left: the chunk begins behind them, and
               * as many at its end repeat its last one */
    enum tec_cause cause;
    int to_come; /* of a ring: chunks that leave in this frame after the one that left last, but for
                  * sequences that end early */
};

struct tec_frame_record {
    int64_t frame, tick_ns, start_ns, end_ns;
    int session;           /* the tick's */
    int place, n_sessions; /* among those that had this frame together; how many they were.
                            * Launches, tokens and rows are of all of them */
    int n_actions;
    struct tec_action_record actions[TEC_MAX_ACTIONS]; /* [n_actions]; the first is there always */
    int64_t planner_ns;                                /* admission, views, policy, snapping */
    int64_t host_ns;                                   /* everything that was not a replay */
    int64_t waited_ns;    /* of its launches: for keys and values of a memory */
    int64_t stood_ns;     /* of its launches: the whole program stood still; a lower bound */
    int64_t text_late_ns; /* of its texts with a hard deadline: the latest ended so long after it */
    int64_t overrun_us;   /* past a deadline, or the session's next tick: the most */
    bool missed;          /* any of its actions was, such a text, or the session's next tick */
    bool failed; /* the device has (tec_device_failure): this frame's launches and all later ones
                  * made nothing; without a release there are no actions; cause is gpu */
    bool cut; /* language that was decided has not run: a frame of another loop waited, or keys and
               * values of a memory were not there yet */
    enum tec_cause cause;
    int tokens, rows, in_flight, snapped, refused, shed;
    int drafted, kept; /* tokens that drafts proposed; of these what the model would have said */
    int to_come;  /* chunks that leave in this frame after the one that left last, of all nodes */
    int depth;    /* of the first ring, in this frame; 0 without one */
    bool filling; /* some ring of the session has released nothing since its start or its last
                   * flush */
    char policy[64]; /* whose plan it ran */
    int n_reads;
    struct tec_read_record reads[TEC_MAX_READS];
    int n_launches;
    struct tec_launch_record launches[TEC_MAX_LAUNCHES];
};

/* Other loops, whose frames the same thread runs on the same device. Called on the frame thread;
 * must not block. */
struct tec_loop_others {
    /* Whether one of their frames waits that has an observation: of this frame's language then
     * what has had a launch goes on later. NULL: there are none, and no `next` either. */
    bool (*wait)(void *self);
    /* When one of them is thought to come; INT64_MAX: that is not known. */
    int64_t (*next)(void *self, int64_t now_ns);
    void *self;
};

struct tec_loop_options {
    const struct tec_topology *topology; /* borrowed */
    int n_chains;
    struct tec_loop_chain chains[TEC_MAX_CHAINS]; /* the first is in frames */
    struct tec_planner planner;
    int n_decoders;
    struct tec_decoder decoders[TEC_MAX_DECODERS];
    int n_actions;
    struct tec_action actions[TEC_MAX_ACTIONS]; /* in order of declaration */
    int64_t period_ns;                          /* 0: saturated */
    int64_t gather_ns; /* a frame that is due may wait so long for those of other sessions */
    /* Called on the frame thread the moment the chunk of `action` is ready; must not block. Of a
     * ring it may be called in a frame without an observation, and more than once in a frame that
     * is less deep than the one before, the oldest first: the record's row of the action says of
     * whose observation it is. `chunk` NULL: the decision leaves the action out of the frame, which
     * is told before anything is launched. */
    void (*released)(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record);
    /* Called as `released` is: the model ended an action of the first ring early, and there will be
     * none of the observation that frame `seen` of the session took in. NULL = none. */
    void (*lost)(void *user, int session, int64_t seen, int64_t captured_ns);
    void *user;
    struct tec_event_sink events;
    struct tec_text_edges *edges; /* of the streams that prefills read; NULL = none */
    /* When the device is wanted next for work that cannot wait: the first tick of any session after
     * `now_ns`, `now_ns` itself while a released frame waits. NULL: there is one session. */
    int64_t (*wanted)(void *self, int64_t now_ns);
    void *wanted_self;
    struct tec_loop_others others;
    /* Whether n tokens of a decoder say one of its `stops`; called on the frame thread for decoders
     * that have any. NULL: nobody can read tokens. */
    bool (*stops)(void *self, int decoder, const int *tokens, int n);
    void *stops_self;
    int n_readers;
    const struct tec_text_reader *readers; /* borrowed */
    /* Called on the frame thread when a session's text that this node reads is finished: n tokens,
     * valid during the call. Must not block. NULL: nobody hears it. */
    void (*said)(void *self, const struct tec_text_reader *reader, int session, const int *tokens,
                 int n);
    void *said_self;
};

struct tec_loop;

enum tec_status tec_loop_create(struct tec_loop **out, const struct tec_loop_options *options,
                                struct tec_heap *heap, struct tec_error *err);
/* NULL is allowed. Regions of requests that have not ended stay taken: a plan that another loop is
 * to run on wants tec_loop_restart first. */
void tec_loop_destroy(struct tec_loop *loop);

/* Take over another planner from the next frame on. */
void tec_loop_set_planner(struct tec_loop *loop, const struct tec_planner *planner);

/* Take costs from a table from the next frame on; NULL: from what is measured. Borrowed. */
void tec_loop_set_table(struct tec_loop *loop, const struct tec_cost_table *table);

/* Run the frame of a tick. `input` NULL: no observation; live language goes on. What is given fits
 * the plan: a session's input does, any other has passed tec_prefix_check. The record is the
 * loop's, valid until the next frame. */
const struct tec_frame_record *
tec_loop_run(struct tec_loop *loop, const struct tec_frame_input *input, struct tec_tick *tick);

/* Run one frame of n sessions, at most as many as the plan's spec.sessions: their observations go
 * through each launch of hard nodes together, the rest is each session's own. The first of them is
 * whose deadline is the earliest. The records are those of tec_loop_record, by the order here. */
void tec_loop_run_sessions(struct tec_loop *loop, const struct tec_frame_input *const *inputs,
                           struct tec_tick *ticks, int n);
const struct tec_frame_record *tec_loop_record(const struct tec_loop *loop, int i);

/* The next frame of the only session, due at `tick_ns`: numbered from 0 since the last reset,
 * deadline and period as the options say; decoders start a request every so many frames, and those
 * of the bit set `spawn` besides. */
struct tec_tick tec_loop_tick(const struct tec_loop *loop, int64_t tick_ns, unsigned spawn);

/* Bit set of the decoders that start a request at an observation of this number. */
unsigned tec_loop_spawns(const struct tec_loop *loop, int64_t number);

/* Observations of a session's newest episode that frames had; of none: zeros. */
struct tec_counted {
    int64_t episode, n;
};

/* Count a session's next observation, and give its number, and what starts at it, to its tick:
 * every(n) begins anew with an episode, at its first observation. NULL: the tick has none, or one
 * that has been counted, at which nothing starts again. */
void tec_loop_count(const struct tec_loop *loop, struct tec_counted *counted,
                    const struct tec_frame_input *input, struct tec_tick *tick);

/* Returns the options that the loop was made with. */
const struct tec_loop_options *tec_loop_settings(const struct tec_loop *loop);

/* Requests that still have tokens to make. Then: those, and sequences in flight in a ring. */
int tec_loop_requests(const struct tec_loop *loop);
int tec_loop_live(const struct tec_loop *loop);
/* Sequences in flight in the rings of a session. */
int tec_loop_in_flight(const struct tec_loop *loop, int session);

/* Between frames: drop what is in flight in the rings of a session, which fill anew. Observations
 * of another episode do so, too. */
void tec_loop_empty_rings(struct tec_loop *loop, int session);

/* Between runs, none of which reads what another left: as after create, frames and requests are
 * numbered from 0. What ran ends with the reason "reset"; costs stay. A robot's reset is another
 * thing: its session begins an episode (tec_session_reset), and its next frame drops what was kept
 * of the one before. */
void tec_loop_restart(struct tec_loop *loop);

/* Between frames: may a later frame's actions be of the observation that this frame took in? At
 * most one frame's a chain and session, one an action and session, and one a request slot, are
 * such. */
bool tec_loop_acts_on(const struct tec_loop *loop, int64_t frame);

/* Texts: two records a request slot and two more; the one that ended first is used again first, so
 * a text that ended is there for at least one more frame. Its count and done may be read from any
 * thread, the rest of a record by a reader that is done with it before the next frame begins. */
int tec_loop_utterances(const struct tec_loop *loop);
const struct tec_utterance *tec_loop_utterance(const struct tec_loop *loop, int i);

/* Between frames: why no frame has been run for a tick by its deadline: the time that frames have
 * lost since the tick, and time in which none ran. TEC_CAUSE_PLAN: they did what they usually do.
 */
enum tec_cause tec_loop_blame(const struct tec_loop *loop, int64_t tick_ns, int64_t deadline_ns,
                              int64_t now_ns);

/* Measured costs; the loop adds to them. */
struct tec_costs *tec_loop_costs(struct tec_loop *loop);

/* Start the costs of all models from a table: before the first frame. */
void tec_loop_prior(struct tec_loop *loop, const struct tec_cost_table *table);

/* Replay every part at its largest counts a few times, so that costs are known before frame 0. With
 * samples (NULL: none) large ones are sampled, and not run at all where a table says what they
 * take. */
void tec_loop_warm(struct tec_loop *loop, const struct tec_frame_input *input, int times,
                   struct tec_replay_samples *samples);

#endif
