/* flight_source.h - where a verb gets a flight recorder from: a recording, or a running robot. */
#ifndef TEC_TOOLS_RECORD_FLIGHT_SOURCE_H
#define TEC_TOOLS_RECORD_FLIGHT_SOURCE_H

#include "tools/cli/command.h"
#include "tools/record/flight.h"

/* The call's file, or the process behind the socket `control` (NULL: none), of which one must be
 * given; of a process the last `last_s` seconds, 0 = all that it has. What a cut file lacks is said
 * on stderr. TEC_INVALID where both or none is given. */
enum tec_status tec_flight_of_call(struct tec_flight *f, struct tec_invocation *call,
                                   const char *control, double last_s, struct tec_error *err);

#endif
