/* costs_settings.h - words of a pipeline that launches cost by, as a file of costs keeps them:
 * `"settings": { "model.round": "bf16", "resources.ring.shift": "rotate" }`, under the names that
 * --set has for them. */
#ifndef TEC_TOOLS_MEASURE_COSTS_SETTINGS_H
#define TEC_TOOLS_MEASURE_COSTS_SETTINGS_H

#include "graph/load/pipeline.h"
#include "graph/run/loop/cost_table.h"
#include "tools/cli/command.h"

/* Those of a pipeline: dtype, quantize, quantize_head (where its head makes tokens) and round of
 * each model, of float32 weights no round but int8; shift and pack of each ring. `dtype`: "f32" or
 * "bf16" for all models; NULL: the file's. A new reference; NULL without memory. */
json_t *tec_profile_costs_settings(const struct tec_pipeline *pipeline, const char *dtype);

/* The same as "model.dtype=bf16 model.quantize=none ..." in the arena, for a report of times; ""
 * where it is full. */
const char *tec_profile_settings_text(const struct tec_pipeline *pipeline, const char *dtype,
                                      struct tec_arena *arena);

/* Say on stderr which of them a table was measured with that are others here; of what only one of
 * the two names, and of a table without any, nothing is said, but where the one of the table is
 * near to one that it lacks. `path` names the table. */
void tec_profile_costs_settings_say(const struct tec_invocation *call,
                                    const struct tec_cost_table *table,
                                    const struct tec_pipeline *pipeline, const char *dtype,
                                    const char *path);

/* The same as W119 where the word is given, else where the model or the ring is declared. */
void tec_profile_costs_settings_check(struct tec_diagnostics *d, const struct tec_cost_table *table,
                                      const struct tec_pipeline *pipeline, const char *path);

#endif
