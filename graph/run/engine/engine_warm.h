/* engine_warm.h - between the files of the engine: the warm-up. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_WARM_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_WARM_H

#include "graph/run/engine/engine.h"

/* Run every part before the first frame, so that its cost is known and its memory is mapped; of
 * large ones on a CPU samples (tec_loop_warm). The loop is made. */
enum tec_status tec_engine_warm(struct tec_engine *engine, struct tec_error *err);

#endif
