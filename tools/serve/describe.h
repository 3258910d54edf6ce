/* describe.h - what a server tells whoever connects of its inputs and actions. */
#ifndef TEC_TOOLS_SERVE_DESCRIBE_H
#define TEC_TOOLS_SERVE_DESCRIBE_H

#include "graph/load/pipeline.h"
#include "graph/run/session/session.h"

#include <jansson.h>

/* {pipeline, inputs: [{name, kind, dtype, shape, required}], actions: {name, rows, columns, dtype[,
 * rate_hz][, execute]}}, as doc/serve.md says it, of the session's robot; where it has none the
 * inputs are the pipeline's. rows or columns 0: there are no actions. Inputs of a pipeline with
 * several robots are left out: each has its own. A new reference, or NULL where memory is missing.
 */
json_t *tec_serve_describe(const struct tec_pipeline *pipeline, const struct tec_session *session,
                           const char *actions, int rows, int columns);

#endif
