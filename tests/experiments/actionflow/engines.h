/* engines.h - the ring that a variant of a cell runs on, and the observations that it is given. */
#ifndef TEC_TESTS_EXPERIMENTS_ACTIONFLOW_ENGINES_H
#define TEC_TESTS_EXPERIMENTS_ACTIONFLOW_ENGINES_H

#include "tests/experiments/actionflow/actionflow.h"
#include "tests/experiments/actionflow/steps.h"

enum { TEC_ACTIONFLOW_VALUES = 16 };

/* A ring's shift and pack are its plan's. Zeroed is closed; must not move while it is open. */
struct tec_actionflow_engine {
    struct tec_suite_engine base;
    struct tec_actionflow_steps steps;
    size_t n_values;
    struct tec_value values[TEC_BENCH_INPUTS][TEC_ACTIONFLOW_VALUES];
    struct tec_frame_input input[TEC_BENCH_INPUTS];
};

/* Tokens of the pictures of the suite's pipeline, of what is open for it nothing stays. */
enum tec_status tec_actionflow_vision(int *tokens, struct tec_actionflow *suite,
                                      struct tec_error *err);

/* Open the ring of a cell in the plan of `variant` (not SEQUENTIAL, nor NAIVE). Its loop tells
 * `events`; a new instruction drops nothing, no deadline is missed. The cell's prefix and
 * token_bytes are set. */
enum tec_status tec_actionflow_open(struct tec_actionflow_engine *e, struct tec_actionflow *suite,
                                    struct tec_actionflow_cell *cell,
                                    enum tec_actionflow_variant variant,
                                    struct tec_event_sink events, struct tec_error *err);
void tec_actionflow_close(struct tec_actionflow_engine *e);

#endif
