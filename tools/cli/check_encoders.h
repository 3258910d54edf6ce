/* check_encoders.h - the sentence encoders that a pipeline's memories name must open. */
#ifndef TEC_TOOLS_CLI_CHECK_ENCODERS_H
#define TEC_TOOLS_CLI_CHECK_ENCODERS_H

#include "graph/load/diagnostics.h"
#include "graph/load/pipeline.h"
#include "tools/cli/command.h"

/* Open the encoder of each memory that a node loads from, and close it again: its files are read as
 * a run reads them. What is wrong is added to `found` at the field that names it (E011) and is no
 * failure; TEC_NO_MEMORY of this machine is one. */
enum tec_status tec_cli_check_encoders(struct tec_invocation *call,
                                       const struct tec_pipeline *pipeline,
                                       struct tec_diagnostics *found, struct tec_error *err);

#endif
