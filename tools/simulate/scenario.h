/* scenario.h - what happens to a robot from outside, as a file says it: which frames, who asks for
 * what, what is late, what takes longer. doc/schedules.md has the fields. */
#ifndef TEC_TOOLS_SIMULATE_SCENARIO_H
#define TEC_TOOLS_SIMULATE_SCENARIO_H

#include "graph/load/pipeline.h"
#include "graph/run/loop/cost_table.h"

#include <stdbool.h>
#include <stdint.h>

/* A session's own ticks; replaces the pipeline's period, hard deadline and spawn. */
struct tec_scenario_session {
    const char *name;
    int64_t period_us, offset_us, deadline_us; /* deadline -1: the pipeline's */
    int spawn_every;                           /* 0: none; -1: the pipeline's */
};

/* Something that happens in a frame. What it means depends on the list. */
struct tec_happening {
    int64_t frame;
    int session;      /* -1 = any */
    int64_t value;    /* arrivals: most tokens, 0 as the node says; cancel: request; spikes, late:
                         microseconds */
    int prio;         /* arrivals */
    const char *name; /* spikes: node; params: parameter; arrivals: decode node or NULL */
    double number;    /* params */
    struct tec_cost_table costs;
};

struct tec_happenings {
    int n;
    struct tec_happening *item; /* number as written */
};

struct tec_scenario {
    bool paced;
    int64_t frames, until_us; /* ticks a session; ticks before; INT64_MAX = not limited */
    int n_sessions;           /* 0: one, the pipeline's */
    struct tec_scenario_session sessions[TEC_MAX_SESSIONS];
    struct tec_happenings arrivals, cancel, spikes, late, params, costs_from, reset, eos,
        instruction, missing;
    int64_t text_tokens;             /* of a prompt; 0 = as many as can be */
    int output_actions, output_dims; /* 0: nothing is handed out */
};

/* The default scenario: 100 frames, each of which follows the one before. */
void tec_scenario_default(struct tec_scenario *scenario);

/* Read a file into the arena. TEC_MALFORMED names the field and what is wrong with it. */
enum tec_status tec_scenario_read(struct tec_scenario *out, const char *path,
                                  struct tec_arena *arena, struct tec_error *err);

/* Read a scenario from parsed JSON; `path` names it in errors. */
enum tec_status tec_scenario_take(struct tec_scenario *out, const json_t *json, const char *path,
                                  struct tec_arena *arena, struct tec_error *err);

#endif
