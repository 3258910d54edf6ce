/* state.h - between the files of the frame loop: what a run changes. Owned by the frame thread. */
#ifndef TEC_GRAPH_RUN_LOOP_STATE_H
#define TEC_GRAPH_RUN_LOOP_STATE_H

#include "graph/kv/stages.h"
#include "graph/run/loop/costs.h"
#include "graph/run/loop/items.h"
#include "graph/run/loop/options.h"
#include "graph/run/loop/pictures.h"
#include "graph/run/loop/record.h"
#include "graph/run/loop/tick.h"

/* The draft of a request, if its decoder has one: a row of the model that proposes. It stands
 * before the tokens that it has not read, of which there are 1 or 2 where it reads at all. */
struct tec_draft {
    int pending; /* as the request's; the request waits for it */
    int n_unread, unread[2];
    int drafted, kept;        /* proposed so far; of these what the request's model said as well */
    struct tec_row_state row; /* region -1: its prefill has not run */
};

/* A live language request. */
struct tec_request {
    int64_t id;
    int decoder, session, request_slot, text; /* text: index of its record */
    int max, made, prio, prompt_tokens;       /* of its own prompt */
    int64_t born_ns, deadline_ns, born_frame; /* deadline INT64_MAX: none */
    int64_t episode;                          /* of the observation that it was born with */
    int64_t number;                           /* among those of its session */
    bool stored, shared, ended;               /* ended: leaves with the next sweep */
    bool whole;  /* not beside the hard nodes in this frame: it recalls a prompt of its own */
    int pending; /* index of a prefill, see below; -1 = none */
    int64_t seen, captured_ns; /* the frame and the time of its prefix's observation, where actions
                                * act on its keys */
    struct tec_row_state row;
    struct tec_draft draft;
};

/* The keys of the last finished text of a decoder, for actions. */
struct tec_text_keys {
    bool held, complete;       /* there is one; with the key of its last token */
    int request_slot, text;    /* tokens behind the prefix, those of a prompt of its own as well */
    int session;               /* whose it is */
    int64_t episode, number;   /* number: of finished texts, counted on */
    int64_t seen, captured_ns; /* of its prefix's observation */
    const float *state;        /* the same */
    struct tec_row_state row;  /* at the step that reads the last token */
};

/* Keys of finished texts whose last token is about to be read. */
struct tec_incomplete_keys {
    struct tec_text_keys *keys[TEC_MAX_SESSIONS];
    struct tec_row_state *rows[TEC_MAX_SESSIONS];
    int tokens[TEC_MAX_SESSIONS], made[TEC_MAX_SESSIONS];
};

/* The newest prefix of a chain: the running frame's, or where a later frame reads it an earlier
 * one's. */
struct tec_chain_prefix {
    int region, rows, last_token; /* region -1: none */
    int *prompt, n_prompt;        /* [text_tokens]; none where tokens have no penalty */
    int64_t frame, captured_ns;   /* of its observation */
    int64_t episode;              /* the same */
    uint64_t key;                 /* of the texts that begin the next one */
    float *state;                 /* of that: [tec_model_state]; where it is kept */
};

/* The texts of a session's newest observation. */
struct tec_text_given {
    bool seen;
    int64_t episode;
    uint64_t keys[1 + TEC_MAX_TEXTS];
};

/* A chain of the loop: a prefill and the nodes on its keys. */
struct tec_chain {
    const struct tec_loop_chain *o;
    /* The first chain with its plan: their costs are its. The first with its model: it keeps the
     * note of whose pictures' rows are there. */
    struct tec_chain *host, *looks;
    bool in_frames; /* see options.h */
    struct tec_plan *plan;
    struct tec_executor *executor;
    struct tec_costs *costs;
    int first_request_slot, slices;       /* in request_slot_taken; of its prefill, 1 = in one */
    int kv_frame, kv_requests;            /* which views; requests -1 = none */
    int prefill_node, language;           /* topology; -1 = none. language: its first decode */
    int action;                           /* its first action node, of the loop's; -1 = none */
    int n_actions, acts[TEC_MAX_ACTIONS]; /* all of them, in the order in which they run */
    int every;                            /* frames from one prefill to the next */
    bool keeps;                           /* the prefix outlives its frame */
    bool says, said;   /* hard nodes wait for texts; these have been made in this frame */
    int64_t due_ns;    /* the earliest deadline of its actions and of those that wait for its texts,
                        * after the tick; INT64_MAX without */
    int64_t behind_ns; /* the earliest deadline of its hard texts that nobody waits for, after the
                        * tick; 0 = there are none */
    bool behind;       /* and they have had their turn in this frame */
    int n_shown;       /* prompts whose segments the view has, and from which one on */
    const struct tec_memory_prompt *shown[TEC_MAX_SESSIONS];
    int first_segment[TEC_MAX_SESSIONS];
    bool parted; /* jobs may run beside the hard nodes of this frame */
    struct tec_chain_prefix prefix;
    struct tec_ring_state *ring; /* the first session's; NULL = none */
    float *chunk;                /* [horizon, dim], or of a ring [stages] */
    struct tec_text_given given[TEC_MAX_TICKING];
    struct tec_late_input *late;   /* [sessions]; NULL = it waits for none */
    struct tec_pictures_seen kept; /* of its model's first chain: whose rows are there */
};

/* One sequence in flight in a ring: an observation and what it has said so far. */
struct tec_ring_item {
    int64_t id, turn, captured_ns; /* id: of the frame that took it in */
    int slot, region, stage;       /* stage: tokens made */
    struct tec_row_state row;
    int tokens[TEC_MAX_STAGES];
};

/* A ring of one session. A frame that it has lived through is a turn. Of the last 64, newest in bit
 * 0: `seen` had an observation, `broken` lost its sequence to an early end token. */
struct tec_ring_state {
    struct tec_chain *chain;
    const char *name;           /* of its resource */
    const char *packed, *alone; /* its launches: with prefills, without */
    bool flushes;               /* with a new instruction */
    int first;                  /* region of its first slot */
    int copy; /* region that gets a copy of the prefix that enters, for requests; -1 = none */
    int n;    /* in flight */
    bool ran; /* in this frame */
    int who;  /* its session's place in this frame */
    const struct tec_chain_input *input; /* that it takes in in this frame; NULL = none */
    int forwards;                        /* of this frame */
    int forwards_left;                   /* behind the one that runs */
    int64_t episode;                     /* of the newest observation */
    struct tec_text_given given;         /* of that, where its prefill waits for one of them */
    int64_t turn;
    bool filling;
    uint64_t seen, broken;
    struct tec_ring_item items[TEC_MAX_STAGES]; /* oldest first */
};

/* The rings of a plan in a frame, those of all its sessions, and the sequences of a forward, in the
 * order of its rows: those that enter, at most one of each ring, then the others, ring by ring,
 * youngest first. */
struct tec_ring_flight {
    struct tec_ring_state *rings[TEC_MAX_STAGES];
    int n_rings;
    bool made;                 /* the newest forward did not fail */
    int64_t end_ns;            /* when it ended */
    struct tec_ring_state *by; /* the first ring: of its plan all are */
    int n, entering;
    struct tec_ring_state *ring[TEC_MAX_STAGES];
    struct tec_ring_item *item[TEC_MAX_STAGES];
    const struct tec_prefix_input *prefixes[TEC_MAX_STAGES];
    struct tec_row_state *rows[TEC_MAX_STAGES];
    int tokens[TEC_MAX_STAGES];
    struct tec_ring_move moves[TEC_MAX_STAGES], regions[TEC_MAX_STAGES]; /* of slots; of regions */
};

/* Frames that ended, for those that had to wait for them. */
enum { TEC_RECENT_FRAMES = 256 };

struct tec_recent {
    int64_t end_ns, over_ns, waited_ns, planner_ns, host_ns;
};

/* As many as a pipeline may have resources, and one more of requests that hold on to a prefix. */
enum { TEC_MAX_KV_VIEWS = 64 + 1 };

/* The frame of one session among those that run together: its input and tick, of the record what is
 * its own, which of the session whose turn it is the loop's has instead. */
struct tec_own_frame {
    const struct tec_frame_input *input;
    struct tec_tick *tick;
    struct tec_frame_record record; /* when the frame has ended: all of it */
    int actions_due;
};

/* The prefixes of one session, of all chains. Of the session whose turn it is they are the chains'
 * instead; of one that is not in the running frame they are those that later frames read. */
struct tec_own_prefixes {
    struct tec_chain_prefix of[TEC_MAX_CHAINS];
};

struct tec_loop {
    struct tec_loop_options o;
    struct tec_heap *heap;
    struct tec_arena arena;
    bool warming; /* what is measured is no frame's */
    struct tec_replay_samples
        *samples; /* of the warm-up, with which large launches are not run; NULL */
    const struct tec_cost_table *table; /* NULL: costs are measured */
    int64_t frame, next_id;
    int64_t n_opened;                      /* frames, counts on */
    int64_t next_of[TEC_MAX_SESSIONS];     /* requests that each session has asked for */
    int sessions;                          /* that may be in one frame */
    struct tec_own_frame *own;             /* [sessions] */
    struct tec_own_prefixes *own_prefixes; /* by session; NULL = there is one */
    int n_own, turn;                       /* of the running frame; whose turn it is */
    int whose;                             /* the session whose prefixes the chains have */
    struct tec_chain *chains;              /* [o.n_chains] */
    int n_hard, hard[TEC_MAX_CHAINS];      /* those in frames, the earliest deadline first */
    int request_slots, max_k, new_tokens,
        prompt_tokens;            /* of all chains together: the sum; the most */
    int n_live;                   /* requests[0 .. n_live - 1], ascending id */
    struct tec_request *requests; /* [request_slots] */
    bool *request_slot_taken;     /* [request_slots] */
    struct tec_utterance *texts;  /* [n_texts] */
    int n_texts;
    int64_t n_ended, *text_ended; /* [n_texts] when it ended, as a count; 0 = not yet used */
    int *tokens, *made; /* of a frame's launches: [request_slots, max_k], [request_slots] */
    float *likely;      /* of a frame's launches: [request_slots, entries] */
    int entries;        /* of the largest tree of any model */
    double *sums;       /* scratch of a ranking */
    int *prompts;       /* [request_slots, prompt_tokens] prompts of their own, by request slot */
    struct tec_text_keys *text_keys; /* [n_decoders, sessions]; NULL = no action reads any */
    struct tec_kept_chunk *kept; /* [n_actions, TEC_MAX_TICKING]; NULL = all run in every frame */
    float *seen_state;           /* [request_slots, state_size] the robot's, of their prefixes */
    size_t state_size;
    int64_t n_held;                      /* counts on */
    const struct tec_frame_input *input; /* of the running frame; NULL = none */
    struct tec_tick *tick;               /* of the running frame */
    struct tec_frame_record record;
    struct tec_frame_view view;
    struct tec_request_view *view_rows; /* [request_slots] */
    struct tec_kv_view kv[TEC_MAX_KV_VIEWS];
    int texts_kv[TEC_MAX_DECODERS]; /* which of them a decoder's texts are in; -1 = none */
    int64_t *late_us;               /* [inputs] */
    struct tec_segment_view segments[TEC_MAX_SEGMENTS];
    struct tec_decision decision, scratch;
    struct tec_frame_result result;
    struct tec_pending_prefill *pending; /* [n_pending]; NULL: every chain is in frames */
    int n_pending;
    /* Those that have slices in this frame, in order: planned ones, behind them those that hard
     * texts wait for. */
    int turns[TEC_MAX_PENDING], n_turns, n_planned;
    int order[TEC_MAX_ROWS], n_order; /* rows that advance, in launch order */
    struct tec_row_state *states[TEC_MAX_ROWS];
    struct tec_scheduled *items; /* of this frame, in the order in which they run */
    int most_items;              /* for which there is room, and for one that never runs */
    int n_items, n_ran;          /* n_ran: those before have run, or run beside */
    struct tec_launch launch;    /* of the item that runs */
    int n_jobs;                  /* launches beside hard nodes */
    struct tec_launch jobs[TEC_MAX_LAUNCHES];
    int seen[TEC_MAX_SESSIONS], n_seen;             /* sessions that a chain is prefilled for */
    struct tec_observed observed[TEC_MAX_SESSIONS]; /* of a launch of theirs */
    struct tec_chain_input pending_input;           /* of a prefill in slices */
    struct tec_incomplete_keys incomplete;
    int lane;               /* of events: 1 while work beside the hard nodes is reported, then 2 */
    int actions_due;        /* chunks that hard nodes have still to make in this frame */
    int64_t replayed_ns;    /* device time of this frame */
    int64_t replayed_until; /* when the last launch that it counts ended */
    int64_t device_over_ns; /* of it, beyond the p99 known before */
    int64_t ran_ns;         /* the executor's CPU time when the frame opened; -1 = not known */
    struct tec_recent recent[TEC_RECENT_FRAMES];
    int64_t n_recent;             /* counts on */
    int64_t pending_ns;           /* of this frame: for inputs */
    int64_t lost_ns;              /* to the host, see account.c */
    int n_rings;                  /* as the topology's */
    struct tec_ring_state *rings; /* [n_rings, sessions]; NULL = there are none */
    struct tec_ring_flight flight;
    struct tec_histogram usual_planner, usual_host;
    struct tec_histogram usual_launches, usual_ran; /* of a frame; where ran_ns is known */
};

static inline int tec_chain_at(const struct tec_loop *l, const struct tec_request *r)
{
    return l->o.decoders[r->decoder].chain;
}

static inline struct tec_chain *tec_chain_of(const struct tec_loop *l, const struct tec_request *r)
{
    return &l->chains[tec_chain_at(l, r)];
}

/* Where a request's own prompt is kept: [prompt_tokens]. */
static inline int *tec_request_prompt(const struct tec_loop *l, const struct tec_request *r)
{
    return l->prompts + (ptrdiff_t)r->request_slot * l->prompt_tokens;
}

/* Is it a hard text? */
static inline bool tec_loop_awaits(const struct tec_loop *l, const struct tec_request *r)
{
    return l->o.decoders[r->decoder].awaited;
}

/* Do a decoder's launches look at drafts? */
static inline bool tec_loop_drafts(const struct tec_loop *l, int decoder)
{
    const struct tec_decoder *d = &l->o.decoders[decoder];
    return d->draft > 0 && l->chains[d->chain].executor->verifies;
}

static inline int tec_chain_index(const struct tec_loop *l, const struct tec_chain *c)
{
    return (int)(c - l->chains);
}

/* Where what each session has of its own is kept: the place of the one whose turn it is. */
static inline int tec_own_session(const struct tec_loop *l)
{
    return l->sessions > 1 ? l->tick->session : 0;
}

static inline const struct tec_chain_input *tec_chain_input(const struct tec_loop *l,
                                                            const struct tec_chain *c,
                                                            const struct tec_frame_input *input)
{
    const struct tec_late_input *late =
        c->late && l->n_opened > 0 ? &c->late[tec_own_session(l)] : NULL;
    return late && late->opened == l->n_opened ? &late->in : &input->chains[c - l->chains];
}

/* The node that makes a chain's actions, the first where there are several; -1 = none. */
static inline int tec_chain_actor(const struct tec_loop *l, const struct tec_chain *c)
{
    return c->action >= 0 ? l->o.actions[c->action].node : -1;
}

/* The cache of a decoder's texts, as policies see it. */
static inline int tec_loop_texts(const struct tec_loop *l, int decoder)
{
    int own = l->texts_kv[decoder];
    return own >= 0 ? own : l->chains[l->o.decoders[decoder].chain].kv_frame;
}

static inline int64_t tec_loop_now(const struct tec_loop *l)
{
    return tec_clock_now(&l->chains->executor->clock);
}

/* The device has failed, and the record says so: nothing is launched any more. */
static inline bool tec_loop_failed(struct tec_loop *l)
{
    bool failed = false;
    for (int i = 0; i < l->o.n_chains; i++)
        failed |= tec_device_failure(l->chains[i].plan->device, NULL) != TEC_OK;
    l->record.failed |= failed;
    return failed;
}

/* Another loop's frame waits for the device: language that has had a launch goes on later. */
static inline bool tec_loop_yields(const struct tec_loop *l)
{
    return l->o.others.wait && l->o.others.wait(l->o.others.self);
}

/* When a frame of another loop is thought to come; INT64_MAX: none is. */
static inline int64_t tec_loop_others_next(const struct tec_loop *l, int64_t now_ns)
{
    return l->o.others.wait ? l->o.others.next(l->o.others.self, now_ns) : INT64_MAX;
}

#endif
