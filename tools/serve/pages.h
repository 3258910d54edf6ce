/* pages.h - what a server tells of itself over HTTP beside its figures: the pipeline's graph, and
 * the newest frames as a trace. */
#ifndef TEC_TOOLS_SERVE_PAGES_H
#define TEC_TOOLS_SERVE_PAGES_H

#include "base/error.h"
#include "tools/serve/metrics.h"

/* A trace is made on the connection thread: the newest events alone, and one a second. */
enum { TEC_TRACE_FRAMES = 50, TEC_TRACE_MOST = 100, TEC_TRACE_EVENTS = 1 << 13 };

/* GET /v1/graph: append the object of `tectum graph -T json`, with the member `dot`, the same as
 * `tectum graph -T dot`. TEC_NO_MEMORY. */
enum tec_status tec_page_graph(struct tec_buffer *out, const struct tec_metrics_source *source,
                               struct tec_heap *heap, struct tec_error *err);

/* GET /trace: append the last `frames` frames that the newest events of the flight recorder hold as
 * Chrome's trace, which ui.perfetto.dev opens. A robot that has done nothing gives a trace without
 * frames. TEC_NO_MEMORY. */
enum tec_status tec_page_trace(struct tec_buffer *out, const struct tec_metrics_source *source,
                               int frames, struct tec_heap *heap, struct tec_error *err);

#endif
