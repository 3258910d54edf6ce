/* engine_sessions.h - between the files of an engine: its sessions. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_SESSIONS_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_SESSIONS_H

#include "graph/run/engine/engine.h"

/* Opens e->session; models are described and their tokenizers open. */
enum tec_status tec_engine_open_sessions(struct tec_engine *e, struct tec_error *err);

#endif
