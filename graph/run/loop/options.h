/* options.h - what a loop is made of, once, from a pipeline: decoders, action nodes and chains, and
 * whom it calls. It does not change after create. */
#ifndef TEC_GRAPH_RUN_LOOP_OPTIONS_H
#define TEC_GRAPH_RUN_LOOP_OPTIONS_H

#include "graph/run/launch/events.h"
#include "graph/run/launch/executor.h"
#include "graph/run/launch/planner.h"

struct tec_frame_record;

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

#endif
