/* trace_slots.h - counters of a trace: how many slots of keys and values are in use. */
#ifndef TEC_TOOLS_RECORD_TRACE_SLOTS_H
#define TEC_TOOLS_RECORD_TRACE_SLOTS_H

#include "tools/record/flight.h"
#include "tools/record/trace_sink.h"

/* A counter for each `kv` of the pipeline, from `from_ns` on, where it changes: texts, sequences of
 * a ring and drafts that have keys there, and prefixes of observations from their making until the
 * frame lets go of them. Events name requests and not regions of the pool, so that a prefix that
 * only texts still read is counted with these. What was there before the first event is counted
 * where a later one shows it. TEC_NO_MEMORY. */
enum tec_status tec_tracing_slots(struct tec_tracing_sink *s, const struct tec_flight *f,
                                  int64_t from_ns, struct tec_error *err);

#endif
