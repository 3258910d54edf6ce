/* plan_constants.h - between the files of graph/compile: device memory that never changes after
 * load.
 */
#ifndef TEC_GRAPH_COMPILE_PLAN_CONSTANTS_H
#define TEC_GRAPH_COMPILE_PLAN_CONSTANTS_H

#include "graph/compile/plan.h"

/* Device memory of `size` bytes, counted as constants; *out is a pointer to it. The plan gives it
 * back. */
enum tec_status tec_plan_constant(struct tec_plan *plan, size_t size, void *out,
                                  struct tec_error *err);

/* Make and upload all constants of a plan whose slots are reserved. */
enum tec_status tec_plan_constants(struct tec_plan *plan, struct tec_error *err);

#endif
