/* by_call.h - forwards of a ring call by call: where a frame's time goes. */
#ifndef TEC_TESTS_EXPERIMENTS_ACTIONFLOW_BY_CALL_H
#define TEC_TESTS_EXPERIMENTS_ACTIONFLOW_BY_CALL_H

#include "tests/experiments/actionflow/engines.h"

/* Time the launches that the ring of this variant knows: of ROTATE the sequential frame's two and
 * a full ring's, of GATHER and COPY a full ring's. What a device cannot time stays
 * unknown. */
enum tec_status tec_actionflow_time_calls(struct tec_actionflow *suite,
                                          struct tec_actionflow_engine *engine,
                                          enum tec_actionflow_variant variant,
                                          struct tec_error *err);

#endif
