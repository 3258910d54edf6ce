/* simulator.h - a simulated robot on a virtual clock: sessions that tick, inputs that are late,
 * launches that take what a cost table says, actions handed out at deadlines. The frame loop and
 * the policy host are the real ones. */
#ifndef TEC_TOOLS_SIMULATE_SIMULATOR_H
#define TEC_TOOLS_SIMULATE_SIMULATOR_H

#include "graph/live/action_output.h"
#include "graph/run/engine/engine.h"
#include "policies/host/policy.h"
#include "tools/measure/arrivals.h"
#include "tools/simulate/scenario.h"
#include "tools/simulate/summary.h"

#include <jansson.h>

/* One session; its frames are numbered by its ticks. */
struct tec_simulator_session {
    const char *name;                          /* NULL: the only one */
    int64_t period_ns, offset_ns, deadline_ns; /* deadline_ns: after the tick; -1 = none */
    int spawn_every;                           /* 0: no requests; -1: the decode nodes' own spawn */
    int64_t next;                              /* number of the next tick */
    int64_t waiting;                           /* released frame that waits, or -1 */
    int64_t waiting_tick_ns, waiting_deadline_ns;
    int64_t open; /* frame that is open, or -1 */
    struct tec_frame_input input;
    struct tec_ask *asks; /* room for the scenario's requests and the generated ones */
    int *cancel_after;    /* [asks] frames until the request is cancelled; 0 = never */
    int64_t *cancels;     /* room as in `asks` */
    struct tec_action_output *outputs[TEC_MAX_ACTIONS]; /* NULL: nothing is handed out */
};

/* A frame whose actions the robot expects, of one action node. */
struct tec_simulator_due {
    int session, action;
    int64_t frame, at_ns;
};

struct tec_simulator_options {
    const struct tec_pipeline *pipeline;
    struct tec_scenario *scenario;
    const struct tec_cost_table *costs;
    const struct tec_cost_table *seen;   /* what policies are told; NULL = costs */
    const struct tec_arrivals *arrivals; /* besides the scenario's; NULL = none */
    struct tec_engine *engine;           /* of tec_engine_simulate over `device` */
    struct tec_virtual *device;          /* its clock is the simulator's */
    struct tec_policy *policy;           /* NULL: parameters cannot change */
    FILE *trace;                         /* event lines; NULL = none */
};

enum { TEC_SIMULATOR_DUE = 256, TEC_SIMULATOR_LATER = 256 };

struct tec_simulator {
    struct tec_simulator_options o;
    struct tec_arena *arena;
    int64_t now_ns;
    bool paced;
    enum tec_status failed; /* no memory or no disk for the trace; too much at once */
    int n_sessions,
        running; /* running: of an open frame, the session whose turn it is; -1 = none */
    struct tec_simulator_session sessions[TEC_MAX_SESSIONS];
    const struct tec_cost_table *costs; /* the costs that hold at this moment */
    int64_t frame;                      /* number of that session's frame */
    int n_due;
    struct tec_simulator_due due[TEC_SIMULATOR_DUE];
    int n_skips;
    struct tec_simulator_due skips[TEC_MAX_SESSIONS]; /* reported once a frame has opened */
    double *chunk;                                    /* [horizon, dims] */
    int n_later; /* future cancels of requests that `arrivals` made */
    struct tec_simulator_later {
        int64_t frame, request;
    } later[TEC_SIMULATOR_LATER];
    json_t *held; /* events of two partitions, to be put in order */
    struct tec_summary summary;
};

/* Set the callbacks by which the loop informs the simulator; call it before the engine is opened.
 */
void tec_simulator_connect(struct tec_simulator *simulator, struct tec_virtual *device,
                           struct tec_engine_options *options);

enum tec_status tec_simulator_init(struct tec_simulator *simulator,
                                   const struct tec_simulator_options *options,
                                   struct tec_arena *arena, struct tec_error *err);

/* Run all frames of the scenario. */
enum tec_status tec_simulator_run(struct tec_simulator *simulator, struct tec_error *err);
void tec_simulator_finish(struct tec_simulator *simulator); /* zeroed is allowed */

/* events.c: an event of the loop. */
void tec_simulator_tell(void *simulator, const struct tec_event *event);

/* trace.c: one event as a JSON object, in the form of doc/schedules.md; NULL when memory is out. */
json_t *tec_trace_event(const struct tec_topology *topology, const struct tec_event *event);
json_t *tec_trace_line(int64_t t_ns, const char *event, int64_t frame, const char *session);

/* ticks.c: timed events until `t_ns`, exclusive: ticks that find their session busy, and actions
 * that are due. */
/* The time at which tick n of a session is due. */
int64_t tec_simulator_tick(const struct tec_simulator_session *session, int64_t n);
void tec_simulator_pass(struct tec_simulator *simulator, int64_t t_ns);
/* Handle timed events until now, then let the ticks of this moment release their frames. */
void tec_simulator_release(struct tec_simulator *simulator);
bool tec_simulator_over(const struct tec_simulator *simulator,
                        const struct tec_simulator_session *session);
int64_t
tec_simulator_next(const struct tec_simulator *simulator); /* the next tick; INT64_MAX = none */
void tec_simulator_handed(struct tec_simulator *simulator, const struct tec_simulator_due *of,
                          int64_t t_ns, const struct tec_handed *handed);
/* Of the frame of a tick: `deadline_ns` is the first action node's, -1 = none. */
void tec_simulator_expect(struct tec_simulator *simulator, int session, int64_t frame,
                          int64_t tick_ns, int64_t deadline_ns);
void tec_simulator_write(struct tec_simulator *simulator, json_t *line);
const double *tec_simulator_chunk(struct tec_simulator *simulator, int64_t frame, int over);

#endif
