/* simulated.h - what every simulation over an engine needs: how long launches take by a table of
 * costs, whether the table has all that runs, and an observation of the largest size. */
#ifndef TEC_TOOLS_SIMULATE_SIMULATED_H
#define TEC_TOOLS_SIMULATE_SIMULATED_H

#include "graph/run/engine/engine.h"

/* Nanoseconds of a launch; the arguments are those of `took` in struct tec_virtual. *name becomes
 * what the table's row is of: a node, a memory in its place, a launch of a ring; "" of a copy. */
int64_t tec_simulated_took(const struct tec_engine *engine, const struct tec_cost_table *costs,
                           int model, int mark, int rows, int k, const char **name);

/* Has every node that runs a row? TEC_MALFORMED names the first that has none. */
enum tec_status tec_simulated_check(const struct tec_engine *engine,
                                    const struct tec_cost_table *costs, struct tec_error *err);

/* An observation of the largest size: every picture, and the longest prompts. In the arena. */
enum tec_status tec_simulated_input(struct tec_frame_input *input, const struct tec_engine *engine,
                                    struct tec_arena *arena, struct tec_error *err);

/* Put what a session's prompts are made of into its input, as a real session does: `instruction` is
 * the key of texts from outside, a version's number that of a stream. */
void tec_simulated_texts(const struct tec_engine *engine, int session, uint64_t instruction,
                         struct tec_frame_input *input);

#endif
