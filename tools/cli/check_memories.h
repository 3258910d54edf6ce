/* check_memories.h - what a pipeline's memories name must be there: encoders, places of files. */
#ifndef TEC_TOOLS_CLI_CHECK_MEMORIES_H
#define TEC_TOOLS_CLI_CHECK_MEMORIES_H

#include "graph/load/diagnostics.h"
#include "graph/load/pipeline.h"
#include "tools/cli/command.h"

/* Open the encoder of each memory that a node loads from, and close it again: its files are read as
 * a run reads them. And look whether its file can be where it is to be. What is wrong is added to
 * `found` at the field that names it (E011) and is no failure; TEC_NO_MEMORY of this machine is
 * one. */
enum tec_status tec_cli_check_memories(struct tec_invocation *call,
                                       const struct tec_pipeline *pipeline,
                                       struct tec_diagnostics *found, struct tec_error *err);

#endif
