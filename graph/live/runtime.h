/* runtime.h - the frame thread: it takes observations from its client, runs their frames, passes
 * on what leaves in the moment it does, and goes on with language in between. `tectum run`, the
 * server and tectum.h are its clients.
 *
 * A runtime belongs to the frame thread, which is the thread of start, or whoever calls work or
 * frame; the bell and the end are everybody's. A frame neither allocates nor locks nor waits. */
#ifndef TEC_GRAPH_LIVE_RUNTIME_H
#define TEC_GRAPH_LIVE_RUNTIME_H

#include "base/bell.h"
#include "base/clock.h"
#include "graph/live/asks.h"
#include "graph/live/decided.h"
#include "graph/live/figures.h"
#include "graph/live/observation_records.h"
#include "graph/live/recorder.h"
#include "graph/live/seam.h"
#include "graph/live/watchdog.h"

#include <pthread.h>

/* A chunk that has left, or a frame that leaves an action out. */
struct tec_runtime_left {
    int action;         /* whose: the loop's */
    int session;        /* of the frame's */
    const float *chunk; /* [horizon, dim] of the model, during the call; NULL: the frame leaves the
                         * action out, and none comes */
    const struct tec_frame_record *record;
    const struct tec_observation_record *seen; /* of whose observation it is */
};

/* Called inside a frame: it neither allocates nor locks nor waits. */
struct tec_runtime_listener {
    void (*left)(void *user, const struct tec_runtime_left *left);
    /* The model ended an action early: there will be none of this observation. NULL: unheard. */
    void (*lost)(void *user, int session, const struct tec_observation_record *seen);
    void *user;
};

/* What the frame thread works on. */
struct tec_runtime_source {
    /* Take what has come, an observation or an order, and run its frames; false: nothing had. */
    bool (*take)(void *user);
    /* Run a frame without an observation, while requests are live; NULL: there is none. It comes
     * `between_ns` after the newest frame began (or ended, with `from_end`). 0: at once, after a
     * pause that grows for as long as such frames launch nothing, because only time or an
     * observation changes that. */
    void (*go_on)(void *user);
    int64_t between_ns;
    bool from_end;
    bool rests; /* rings stand still in such frames, and need none */
    /* Where runtimes have turns (turns.h); NULL: `take` does not say what has come. When that is
     * due: INT64_MAX, nothing has. When an observation is thought to come, where none has. */
    int64_t (*due)(void *user);
    int64_t (*expected)(void *user, int64_t now_ns);
    void *user;
};

/* An observation of a frame; input NULL: the session has none. */
struct tec_runtime_seen {
    const struct tec_frame_input *input;
    int64_t number;          /* that its client gives it */
    const double *state_raw; /* [tec_session_state] */
    int64_t acts_for;        /* the robot's tick, for its watchdogs; ticks do not go down */
};

enum { TEC_RUNTIME_UNREAD = 480 };

/* What belongs to one of the frame's sessions. */
struct tec_runtime_session {
    struct tec_observation_records records;
    struct tec_asks *asks; /* requests that consumers start and cancel; NULL = none. Borrowed */
    struct tec_watchdog watchdogs[TEC_MAX_ACTIONS];
    int64_t acts_for; /* of the running frame */
    struct tec_seam seams[TEC_MAX_ACTIONS];
};

/* Owned by the caller of init; must not move until it has stopped. */
struct tec_runtime {
    struct tec_runtime_listener listener;
    struct tec_runtime_source source;
    struct tec_engine *engine; /* borrowed */
    struct tec_runtime_session sessions[TEC_MAX_SESSIONS];
    int n_watchdogs;                 /* of a session: one for each action node, or none */
    struct tec_figures figures;      /* what it has done so far */
    char unread[TEC_RUNTIME_UNREAD]; /* see tec_runtime_unread; `figures.unread` says it is there */
    struct tec_deciding *deciding;   /* hears what is decided; NULL: nobody asks. Borrowed */
    struct tec_recorder recorder;    /* what it did last, from tec_runtime_record on */
    struct tec_clock clock;
    int64_t began_ns, ended_ns; /* of the newest frame */
    bool launched;              /* anything, in that frame */
    int64_t pause_ns;           /* before the next frame without an observation */
    int64_t look_ns;            /* see tec_runtime_look */
    pthread_t thread;
    bool started;
    _Atomic bool ending;
    struct tec_bell work, *bell; /* rings for the frame thread; bell: its own, or all turns' */
    struct tec_turns *turns;     /* that it has joined; NULL: none. Borrowed */
};

/* Before the engine is opened, with tec_runtime_released and tec_runtime_lost as its callbacks, the
 * runtime as their user. */
void tec_runtime_init(struct tec_runtime *rt, const struct tec_runtime_listener *listener);
void tec_runtime_released(void *runtime, int action, const float *chunk,
                          const struct tec_frame_record *record);
void tec_runtime_lost(void *runtime, int session, int64_t seen, int64_t captured_ns);

/* Run this engine, which is borrowed. Everything comes from the arena. */
enum tec_status tec_runtime_attach(struct tec_runtime *rt, struct tec_engine *engine,
                                   struct tec_arena *arena, struct tec_error *err);

/* The engine's sink of events, set before it is opened; and, before the first frame, the flight
 * recorder behind it. Without the recorder they are counted, but not kept. */
struct tec_event_sink tec_runtime_events(struct tec_runtime *rt);
enum tec_status tec_runtime_record(struct tec_runtime *rt, struct tec_arena *arena,
                                   struct tec_error *err);

/* Any thread: of the first text that no prompt could be made of, its frame, where and why; NULL:
 * there was none. Stays as it is. How many there were is one of the figures. */
const char *tec_runtime_unread(const struct tec_runtime *rt);

/* Give each action node a watchdog that gets every chunk the moment it leaves; `actions` a tick, 0
 * = all rows. Before the first frame of a run; `unwatch` behind its last one. */
enum tec_status tec_runtime_watch(struct tec_runtime *rt, int actions, struct tec_arena *arena,
                                  struct tec_error *err);
void tec_runtime_unwatch(struct tec_runtime *rt);

/* Frame thread: run the frame of n sessions' ticks, whose observations are `seen` [n]; start and
 * cancel what consumers of these sessions ask for. Returns the record of the first session
 * (tec_loop_record). */
const struct tec_frame_record *tec_runtime_frame(struct tec_runtime *rt,
                                                 const struct tec_runtime_seen *seen,
                                                 struct tec_tick *ticks, int n);

/* Within `take` of the source, which then returns false: what has come waits for more until that
 * time. No frame begins before; then, or when the bell rings, `take` is called again. */
void tec_runtime_look(struct tec_runtime *rt, int64_t at_ns);

/* Be the frame thread until tec_runtime_end. */
void tec_runtime_work(struct tec_runtime *rt, const struct tec_runtime_source *source);

/* The same on a thread of its own. TEC_NO_MEMORY: it does not start. */
enum tec_status tec_runtime_start(struct tec_runtime *rt, const struct tec_runtime_source *source,
                                  struct tec_error *err);

/* Any thread: something has come; the frame thread returns behind its frame. */
void tec_runtime_ring(struct tec_runtime *rt);
void tec_runtime_end(struct tec_runtime *rt);

/* End the thread of start and wait for it; then another one may be started. Zeroed is allowed. */
void tec_runtime_stop(struct tec_runtime *rt);

#endif
