/* simulate.h - one simulated run, from files to a summary: what the verb, the judge of golden
 * schedules and the policy gate share. */
#ifndef TEC_TOOLS_SIMULATE_SIMULATE_H
#define TEC_TOOLS_SIMULATE_SIMULATE_H

#include "tools/cli/open_engine.h"
#include "tools/simulate/simulator.h"

/* The pipeline's policy, or that of the call's --policy, with its parameters. */
struct tec_simulation_options {
    const char *pipeline, *costs; /* costs NULL: launch_ms */
    double launch_ms;             /* of every launch, and of every step of a decode; 0 = not said */
    const char *scenario;         /* NULL: 100 frames, nothing from outside */
    const char
        *arrivals; /* a generator's specification, see tools/measure/arrivals.h; NULL = none */
    int frames;    /* 0: the scenario's */
    int clock;     /* 0 the scenario's, 1 saturated, 2 paced */
    FILE *trace;   /* event lines; NULL = none */
};

/* Owned by the caller of open until close; must not move in between. */
struct tec_simulation {
    struct tec_opened opened;
    struct tec_virtual device[TEC_MAX_CHAINS];
    struct tec_scenario scenario;
    struct tec_cost_table costs;
    struct tec_arrivals arrivals;
    struct tec_simulator simulator;
};

/* `call` gives root, heap, arena and the shared options of the model, --set, --policy, --param. On
 * failure there is nothing to close. */
enum tec_status tec_simulation_open(struct tec_simulation *s, struct tec_invocation *call,
                                    const struct tec_simulation_options *options,
                                    struct tec_error *err);
enum tec_status tec_simulation_run(struct tec_simulation *s, struct tec_error *err);
void tec_simulation_close(struct tec_simulation *s); /* zeroed is allowed */

#endif
