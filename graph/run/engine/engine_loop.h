/* engine_loop.h - between the files of the engine: a pipeline's nodes as the frame loop wants them.
 */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_LOOP_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_LOOP_H

#include "graph/run/engine/engine.h"

/* Topology and loop over an executor for each model; the engine has models and plans.
 * TEC_NO_MEMORY; TEC_UNSUPPORTED, located, for more decode nodes than a loop runs. */
enum tec_status tec_engine_make_loop(struct tec_engine *engine,
                                     const struct tec_executor *executors, struct tec_error *err);

/* Edges of text for so many sessions, where a prefill reads a stream: e->edges. */
enum tec_status tec_engine_make_edges(struct tec_engine *e, int sessions, struct tec_error *err);

#endif
