/* flight_costs.h - what launches took in a recording, as a table of costs. */
#ifndef TEC_TOOLS_RECORD_FLIGHT_COSTS_H
#define TEC_TOOLS_RECORD_FLIGHT_COSTS_H

#include "graph/run/loop/cost_table.h"
#include "tools/record/flight.h"

/* A row for each node and number of rows that ran, with the quantiles of what was measured: of a
 * decode node by step, where each launch counts as if it had made all its steps. Names are those
 * of the flight, the rest is in the arena. TEC_NO_MEMORY; TEC_MALFORMED: it has more rows than a
 * table may. */
enum tec_status tec_flight_costs(struct tec_cost_table *out, const struct tec_flight *f,
                                 struct tec_arena *arena, struct tec_error *err);

#endif
