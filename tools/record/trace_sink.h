/* trace_sink.h - what a trace is told: tracks, slices, moments, counters and flows; its two formats
 * are Chrome's JSON and Perfetto's protobuf. */
#ifndef TEC_TOOLS_RECORD_TRACE_SINK_H
#define TEC_TOOLS_RECORD_TRACE_SINK_H

#include "base/error.h"
#include "tools/record/buffer.h"

#include <jansson.h>

enum tec_tracing_format { TEC_TRACING_PERFETTO, TEC_TRACING_CHROME };

/* A flow ties events of several tracks together: an observation to its chunk, a request to its
 * launches. */
enum tec_flow_step { TEC_FLOW_NONE, TEC_FLOW_BEGINS, TEC_FLOW_GOES_ON, TEC_FLOW_ENDS };

struct tec_tracing_event {
    int track;
    const char *name;
    int64_t start_ns, end_ns; /* equal: a moment */
    const json_t *args;       /* an object of numbers, texts and booleans; NULL: none */
    uint64_t flow;
    enum tec_flow_step step;
};

/* Zero-initialise, set format and text.heap. The trace grows in `text`. */
struct tec_tracing_sink {
    enum tec_tracing_format format;
    struct tec_buffer text;
    struct tec_buffer packet, event, inner; /* Perfetto: the packet that is made */
    int n_tracks;
    bool any; /* Chrome: an event has been written */
};

/* Begin and end the trace; after finish `text` is whole, or has failed. */
void tec_tracing_begin(struct tec_tracing_sink *s);
void tec_tracing_finish(struct tec_tracing_sink *s);

/* A new track, shown in the order of their making: of slices and moments, or, with a unit, of a
 * counter. Returns its number. */
int tec_tracing_track(struct tec_tracing_sink *s, const char *name, const char *unit);
void tec_tracing_event(struct tec_tracing_sink *s, const struct tec_tracing_event *event);
void tec_tracing_count(struct tec_tracing_sink *s, int track, const char *name, int64_t t_ns,
                       double value);

#endif
