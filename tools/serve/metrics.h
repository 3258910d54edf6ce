/* metrics.h - the figures of a server as Prometheus reads them (text format 0.0.4): GET /metrics.
 */
#ifndef TEC_TOOLS_SERVE_METRICS_H
#define TEC_TOOLS_SERVE_METRICS_H

#include "graph/live/figures.h"
#include "graph/live/recorder.h"
#include "tools/record/buffer.h"
#include "tools/serve/safety.h"
#include "tools/serve/stats.h"

/* Where the figures come from; everything is borrowed, and read while others write. */
struct tec_metrics_source {
    const struct tec_engine *engine;
    const struct tec_figures *figures;
    const struct tec_safety *safety;
    const struct tec_serve_stats *stats; /* the calling thread's */
    const char *pipeline;
    const struct tec_recorder *recorder; /* of the frames */
    struct tec_buffer
        graph;         /* /v1/graph's text once it was asked for: it stays as it is. As below */
    int64_t traced_ns; /* when a trace was made last; 0: never. The connection thread's */
};

/* Append the whole text. A buffer that has failed holds none of use. */
void tec_metrics_text(struct tec_buffer *out, const struct tec_metrics_source *source);

#endif
