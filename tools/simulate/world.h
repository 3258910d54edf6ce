/* world.h - a robot's world on a virtual clock: sessions that tick, inputs that are late, launches
 * that take what a cost table says, actions handed out at deadlines. The frame loop and the policy
 * host are the real ones. */
#ifndef TEC_TOOLS_SIMULATE_WORLD_H
#define TEC_TOOLS_SIMULATE_WORLD_H

#include "graph/run/engine.h"
#include "graph/run/handout.h"
#include "policies/host/policy.h"
#include "tools/measure/arrivals.h"
#include "tools/simulate/scenario.h"
#include "tools/simulate/summary.h"

#include <jansson.h>

/* One session; its frames are numbered by its ticks. */
struct tec_world_session {
    const char *name;                          /* NULL: the only one */
    int64_t period_ns, offset_ns, deadline_ns; /* deadline after the tick; -1 = none */
    int spawn_every;                           /* 0 none, -1 as decoders say */
    int64_t next;                              /* number of the next tick */
    int64_t waiting;                           /* released frame that waits, or -1 */
    int64_t waiting_tick_ns, waiting_deadline_ns;
    struct tec_handout *handout; /* NULL: nothing is handed out */
};

/* A frame whose actions the robot expects. */
struct tec_world_due {
    int session;
    int64_t frame, at_ns;
};

struct tec_world_options {
    const struct tec_pipeline *pipeline;
    struct tec_scenario *scenario;
    const struct tec_cost_table *costs;
    const struct tec_cost_table *seen;   /* what policies are told; NULL = costs */
    const struct tec_arrivals *arrivals; /* besides the scenario's; NULL = none */
    struct tec_engine *engine;           /* of tec_engine_simulate over `device` */
    struct tec_virtual *device;          /* its clock is the world's */
    struct tec_policy *policy;           /* NULL: parameters cannot change */
    FILE *trace;                         /* event lines; NULL = none */
};

enum { TEC_WORLD_DUE = 256, TEC_WORLD_LATER = 256 };

struct tec_world {
    struct tec_world_options o;
    struct tec_arena *arena;
    int64_t now_ns;
    bool paced;
    enum tec_status failed;  /* no memory or no disk for the trace; too much at once */
    int n_sessions, running; /* running: session of the open frame, -1 = none */
    struct tec_world_session sessions[TEC_MAX_SESSIONS];
    const struct tec_cost_table *costs; /* that is true now */
    int64_t frame;                      /* of the open frame */
    int n_due;
    struct tec_world_due due[TEC_WORLD_DUE];
    int n_skips;
    struct tec_world_due skips[TEC_MAX_SESSIONS]; /* to be told of after a frame has opened */
    struct tec_frame_input input;
    double *chunk;        /* [horizon, dims] */
    struct tec_ask *asks; /* room for all that the scenario has, and what may come besides */
    int *cancel_after;    /* of asks: frames until they are cancelled, 0 = not */
    int64_t *cancels;     /* as asks */
    int n_later;          /* cancellations to come, of requests that `arrivals` made */
    struct tec_world_later {
        int64_t frame, request;
    } later[TEC_WORLD_LATER];
    json_t *held; /* events of two partitions, to be put in order */
    struct tec_summary summary;
};

/* Everything that simulate needs to be told about by the loop; set before the engine is opened. */
void tec_world_connect(struct tec_world *world, struct tec_virtual *device,
                       struct tec_engine_options *options);

enum tec_status tec_world_init(struct tec_world *world, const struct tec_world_options *options,
                               struct tec_arena *arena, struct tec_error *err);

/* All frames of the scenario. */
enum tec_status tec_world_run(struct tec_world *world, struct tec_error *err);
void tec_world_finish(struct tec_world *world); /* zeroed is allowed */

/* trace.c: one event as a JSON object, in the form of doc/schedules.md; NULL when memory is out. */
json_t *tec_trace_event(const struct tec_topology *topology, const struct tec_event *event);
json_t *tec_trace_line(int64_t t_ns, const char *event, int64_t frame, const char *session);

/* ticks.c: what happens by itself until `t_ns`, exclusive: ticks that find their session busy, and
 * actions that are due. */
/* When tick n of a session is due. */
int64_t tec_world_tick(const struct tec_world_session *session, int64_t n);
void tec_world_pass(struct tec_world *world, int64_t t_ns);
/* The same until now, then ticks of this moment release their frames. */
void tec_world_release(struct tec_world *world);
bool tec_world_over(const struct tec_world *world, const struct tec_world_session *session);
int64_t tec_world_next(const struct tec_world *world); /* the next tick; INT64_MAX = none */
void tec_world_handed(struct tec_world *world, int session, int64_t frame, int64_t t_ns,
                      const struct tec_handed *handed);
void tec_world_expect(struct tec_world *world, int session, int64_t frame, int64_t at_ns);
void tec_world_write(struct tec_world *world, json_t *line);
const double *tec_world_chunk(struct tec_world *world, int64_t frame);

#endif
