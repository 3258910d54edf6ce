/* trace.h - a flight recorder's events as a trace that Perfetto shows. */
#ifndef TEC_TOOLS_RECORD_TRACE_H
#define TEC_TOOLS_RECORD_TRACE_H

#include "tools/record/flight.h"
#include "tools/record/trace_sink.h"

/* Frames by session, launches by node and by stream, the policy, requests, operations on keys and
 * values, and counters; of the last `last_ns` of the recording, 0 = all. Flows tie an observation
 * to its chunk, and a request to its launches. TEC_NO_MEMORY. */
enum tec_status tec_tracing_of_flight(struct tec_tracing_sink *s, struct tec_flight *f,
                                      int64_t last_ns, struct tec_error *err);

#endif
