/* open_pipeline.h - the pipeline file that a verb works with, with --set applied. */
#ifndef TEC_TOOLS_CLI_OPEN_PIPELINE_H
#define TEC_TOOLS_CLI_OPEN_PIPELINE_H

#include "graph/load/pipeline.h"
#include "tools/cli/command.h"

/* Load and check. What is wrong goes to `d` (initialised by the caller). */
enum tec_status tec_cli_load_pipeline(struct tec_pipeline **out, struct tec_invocation *call,
                                      const char *path, struct tec_diagnostics *d,
                                      struct tec_error *err);

/* The same for verbs that only need the result: the failure names the first error
 * and how many there are; warnings are left to `check`. `any`: of any valid graph, to draw it or
 * write it out. Free with tec_pipeline_free. */
enum tec_status tec_cli_open_pipeline(struct tec_pipeline **out, struct tec_invocation *call,
                                      const char *path, bool any, struct tec_error *err);

#endif
