/* engine_memories.h - between the files of the engine: the memories of its chains. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_MEMORIES_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_MEMORIES_H

#include "graph/run/engine/engine.h"

/* Host memory that those of all chains take, with plans that may only measure. */
struct tec_memory_bytes tec_engine_measure_memories(const struct tec_engine *e);

/* The memories of a chain, and rooms for prompts that requests wait with; it may have none. */
enum tec_status tec_engine_open_memories(struct tec_engine *e, int chain, struct tec_error *err);
/* What waiting prompts hold of the memories: before the sessions are destroyed, whose prompts these
 * were. */
void tec_engine_drop_prompts(struct tec_engine *e);
void tec_engine_close_memories(struct tec_engine *e);

/* The executor of a chain, with its plan: real or interpreted, behind what recalls its prompts. */
enum tec_status tec_engine_make_executor(const struct tec_engine *e,
                                         const struct tec_engine_chain *c, struct tec_executor *out,
                                         struct tec_error *err);

#endif
