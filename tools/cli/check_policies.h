/* check_policies.h - the policies that a pipeline names must be there and take their parameters. */
#ifndef TEC_TOOLS_CLI_CHECK_POLICIES_H
#define TEC_TOOLS_CLI_CHECK_POLICIES_H

#include "graph/load/diagnostics.h"
#include "graph/load/pipeline.h"
#include "tools/cli/command.h"

/* Open the pipeline's policy with its parameters, or the call's --policy in place of it, and the
 * guard's fallback, and close them again. What is wrong in the pipeline's file is added to `found`
 * with its place (E021: no such policy, E011: the policy or its parameters) and is no failure; a
 * --policy that cannot be opened is one, and so is TEC_NO_MEMORY of this machine. */
enum tec_status tec_cli_check_policies(struct tec_invocation *call,
                                       const struct tec_pipeline *pipeline,
                                       struct tec_diagnostics *found, struct tec_error *err);

#endif
