/* engine_budget.h - whether what an engine would take is allowed, and there. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_BUDGET_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_BUDGET_H

#include "graph/run/engine/engine.h"

/* Before anything large is taken: the pipeline's budgets of device and host, and what is free where
 * it will lie. TEC_NO_MEMORY says how much is needed, for what, and how much there is. The engine's
 * device is open. */
enum tec_status tec_engine_check_budget(const struct tec_engine *engine,
                                        const struct tec_measured *measured, struct tec_error *err);

#endif
