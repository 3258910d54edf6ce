/* trace_flows.h - which events of a flight belong to a flow of its trace: each flow that begins
 * ends. */
#ifndef TEC_TOOLS_RECORD_TRACE_FLOWS_H
#define TEC_TOOLS_RECORD_TRACE_FLOWS_H

#include "tools/record/flight.h"
#include "tools/record/trace_sink.h"

enum { TEC_TRACE_REQUESTS = 64 }; /* that are alive at once and shown */

/* A step (enum tec_flow_step) of each frame and event. An observation's flow begins with its frame
 * and ends where the last of its actions leave; a request's begins with its slice, which is put at
 * the event of its end, and ends at the last of its tokens. */
struct tec_tracing_flows {
    uint8_t *of_frame; /* [n_frames] */
    uint8_t *of_event; /* [n_events]: actions that leave, tokens, ends of requests */
};

/* Find them, of frames and requests that begin at from_ns or later; the arrays are in the arena.
 * TEC_NO_MEMORY. */
enum tec_status tec_tracing_flows_find(struct tec_tracing_flows *flows, const struct tec_flight *f,
                                       int64_t from_ns, struct tec_arena *arena,
                                       struct tec_error *err);

#endif
