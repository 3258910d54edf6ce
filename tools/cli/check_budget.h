/* check_budget.h - memory.device and memory.host of a pipeline, against what it takes. */
#ifndef TEC_TOOLS_CLI_CHECK_BUDGET_H
#define TEC_TOOLS_CLI_CHECK_BUDGET_H

#include "graph/load/diagnostics.h"
#include "graph/load/pipeline.h"
#include "tools/measure/measure.h"

/* E040 at each of the two that is less than what was measured. */
void tec_cli_check_budget(struct tec_diagnostics *d, const struct tec_pipeline *p,
                          const struct tec_measured *m);

#endif
