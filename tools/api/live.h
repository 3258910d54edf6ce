/* live.h - behind tectum.h: an engine, its frame thread, and what passes between it and the
 * consumers of each of its sessions. */
#ifndef TEC_TOOLS_API_LIVE_H
#define TEC_TOOLS_API_LIVE_H

#include "base/ring.h"
#include "graph/live/runtime.h"
#include "graph/live/transcript.h"
#include "policies/host/policy.h"

#include "tectum.h"

#include <pthread.h>

/* A prepared observation. The triple buffer's place is the number of the session's set that it
 * points into, so the set that a frame reads is never the one that is written. */
struct tec_live_input {
    struct tec_frame_input input;
    const double *state_raw; /* in the same set; converts relative actions to absolute ones */
    int64_t number;
    int64_t submitted_ns, ready_ns; /* when tectum_submit was called; when the input was complete */
};

/* The model's actions, with the state that converts them to the robot's. */
struct tec_live_output {
    float *chunk;
    double *state_raw;
    int64_t number;                         /* of the observation that who waits for it has given */
    int64_t seen, captured_ns, released_ns; /* of the observation that it is of: an earlier one
                                             * where the prefix is an earlier frame's */
    bool missed;
    bool left_out; /* it is no chunk: the frame leaves the action out */
};

/* An action node's way to its consumers. Under hand_lock but for what the frame thread posts. */
struct tec_live_action {
    const char *name;              /* NULL: the pipeline has no action node */
    int64_t deadline_ns;           /* after its tick; 0 = none */
    struct tec_watchdog *watchdog; /* the runtime's */
    bool stopped;                  /* by a limit of the robot, for tectum_wait too */
    struct tec_triple outbox;
    struct tec_live_output outputs[TEC_TRIPLE_PLACES];
    int64_t taken; /* number of outputs[outbox.reading], -1 = none */
};

/* Why there will be no actions of the observations up to one. */
struct tec_live_loss {
    int64_t number, captured_ns, told_ns;
    const char *reason; /* static */
};

/* What the sessions of an engine share. */
struct tec_live_shared {
    struct tec_heap heap;
    struct tec_arena arena;
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    struct tec_policy *policy, *fallback; /* that of the guard; NULL: the default plan */
    struct tec_runtime runtime;
    int64_t gather_ns; /* a frame waits so long for observations of other sessions */
    int n_sessions;
    struct tectum *sessions; /* [n_sessions], in the arena; the first is what tectum_open returns */
};

/* One session: a robot. */
struct tectum {
    struct tec_live_shared *live;
    int index;                     /* among the sessions */
    struct tec_pipeline *pipeline; /* the shared one, as the next is */
    struct tec_engine *engine;
    struct tec_session *session;

    pthread_mutex_t lock; /* consumers': guards the preparation of inputs and inbox.writing */
    struct tec_triple inbox;
    struct tec_live_input inputs[TEC_TRIPLE_PLACES];
    bool waits;       /* the frame thread's: inputs[inbox.reading] is for its next frame */
    int64_t since_ns; /* the frame thread's: since when; 0: there was none yet */
    _Atomic int64_t submitted;
    _Atomic int64_t *ticks; /* [TEC_LIVE_FRAMES] when each observation was submitted */
    struct tec_asks asks;   /* requests that are asked for or given up */

    pthread_mutex_t hand_lock; /* consumers': actions, outbox.reading, the watchdogs' end. Nobody
                                  prepares an input under it, so that a slow picture keeps no
                                  actions back */
    int n_actions;             /* at least one */
    struct tec_live_action actions[TEC_MAX_ACTIONS];
    struct tec_triple lossbox;
    struct tec_live_loss losses[TEC_TRIPLE_PLACES];
    int64_t missed_up_to;       /* number of losses[lossbox.reading], -1 = none */
    struct tec_bell done;       /* rings for those that wait for actions */
    struct tec_live_loss loss;  /* the frame thread's: newest that is not told, number -1 = none */
    int64_t released;           /* the frame thread's: newest observation that gave actions of the
                                 * first action node */
    _Atomic int64_t forgets;    /* a reset: observations below this number are dropped */
    _Atomic bool emptying;      /* the frame thread has not emptied the ring yet */
    int64_t tick;               /* the frame thread's: the robot's tick that its frame acts for */
    int64_t frame;              /* the frame thread's: frames that the session was in, of several */
    int64_t ran_ns;             /* the same thread's: when the newest of these was run */
    struct tec_counted counted; /* the same thread's: what texts are counted by */
    _Atomic int64_t blind;      /* newest tick without an observation; -1 = none */

    struct tec_transcript transcript; /* what requests say */
};

enum { TEC_LIVE_FRAMES = 4096 };

/* The frame thread's listener and source; `user` is what the sessions share. */
void tec_live_left(void *user, const struct tec_runtime_left *left);
void tec_live_lost(void *user, int session, const struct tec_observation_record *seen);
struct tec_runtime_source tec_live_source(struct tec_live_shared *live);

/* For the public functions: fill the error with one sentence. */
enum tectum_status tec_live_fail(struct tectum_error *err, enum tec_status status,
                                 const char *text);
enum tectum_status tec_live_convert(struct tectum_error *err, const struct tec_error *from);

/* The action node of that name (NULL: the first); NULL: there is none. */
struct tec_live_action *tec_live_action(struct tectum *engine, const char *node);

/* When a wait of so many nanoseconds ends; below 0: never. */
int64_t tec_live_end(int64_t timeout_ns);

#endif
