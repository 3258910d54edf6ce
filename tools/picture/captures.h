/* captures.h - why each capture of a pipeline is there: its nodes, the point that asked for it. */
#ifndef TEC_TOOLS_PICTURE_CAPTURES_H
#define TEC_TOOLS_PICTURE_CAPTURES_H

#include "graph/run/engine/engine.h"

#include <jansson.h>
#include <stdio.h>

/* Of a planned engine a capture each: name, commands, nodes, one sentence of why, and the line of
 * the file that asks for it; what needs no capture of its own last. Texts are made in `arena`.
 * TEC_NO_MEMORY. */
enum tec_status tec_captures_text(const struct tec_engine *engine, struct tec_arena *arena,
                                  FILE *out, struct tec_error *err);
/* {pipeline, captures: [{part, nodes, why, file, line, commands, activations, slices}]}; the caller
 * owns *out. */
enum tec_status tec_captures_json(json_t **out, const struct tec_engine *engine,
                                  struct tec_arena *arena, struct tec_error *err);

#endif
