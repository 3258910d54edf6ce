/* engine_sessions.h - between the files of an engine: its sessions. */
#ifndef TEC_GRAPH_RUN_ENGINE_SESSIONS_H
#define TEC_GRAPH_RUN_ENGINE_SESSIONS_H

#include "graph/run/engine.h"

/* Opens e->session; models are described and their tokenizers open. */
enum tec_status tec_engine_open_sessions(struct tec_engine *e, struct tec_error *err);

/* Before the first frame: the robots carry out `actions` of a chunk at each observation; 0 = as
 * many as their descriptions say. TEC_INVALID: a chunk is used up before its node runs again. */
enum tec_status tec_engine_carry(struct tec_engine *e, int actions, struct tec_error *err);

#endif
