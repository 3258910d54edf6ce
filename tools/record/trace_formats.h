/* trace_formats.h - the formats of a trace, one table of functions each. */
#ifndef TEC_TOOLS_RECORD_TRACE_FORMATS_H
#define TEC_TOOLS_RECORD_TRACE_FORMATS_H

#include "tools/record/trace_sink.h"

struct tec_tracing_writer {
    void (*begin)(struct tec_tracing_sink *s);
    void (*finish)(struct tec_tracing_sink *s);
    void (*track)(struct tec_tracing_sink *s, int track, const char *name, const char *unit);
    void (*event)(struct tec_tracing_sink *s, const struct tec_tracing_event *event);
    void (*count)(struct tec_tracing_sink *s, int track, const char *name, int64_t t_ns,
                  double value);
};

extern const struct tec_tracing_writer tec_tracing_perfetto, tec_tracing_chrome;

#endif
