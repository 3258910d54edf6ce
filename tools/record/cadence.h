/* cadence.h - how regularly a robot ran: rate, misses, headroom, and what its nodes took; of the
 * end of what a flight recorder kept. */
#ifndef TEC_TOOLS_RECORD_CADENCE_H
#define TEC_TOOLS_RECORD_CADENCE_H

#include "tools/record/flight.h"

#include <stdio.h>

struct tec_cadence_node {
    size_t launches;
    double hz, share; /* launches a second; of the time */
    int64_t p50_us, p99_us, max_us;
};

/* Of `seconds` of frames. Rates are 0 where there is only one. */
struct tec_cadence {
    double seconds, hz, wanted_hz, action_hz, worst_hz, tokens_s; /* wanted 0: no period is set */
    size_t frames, missed, left_out; /* left_out: actions that the policy left out */
    size_t causes[TEC_CAUSES];
    int64_t newest; /* number of the newest frame; -1: there is none */
    int64_t frame_p50_us, frame_p99_us, frame_max_us;
    int64_t headroom_us; /* median of what was left until the deadline; INT64_MIN: there is none */
    int64_t policy_p50_us, policy_max_us, host_p50_us;
    int in_flight;
    const char *policy;
    struct tec_cadence_node nodes[TEC_MAX_NODES];
};

/* Of the last `last_s` seconds, 0 = all. TEC_NO_MEMORY. */
enum tec_status tec_cadence_of(struct tec_cadence *out, const struct tec_flight *f, double last_s,
                               struct tec_error *err);

/* "29.84 Hz of 30, 6 of 598 over, worst second 27 Hz, headroom 7.4 ms" */
void tec_cadence_line(const struct tec_cadence *c, char *text, size_t room);

/* The whole as lines, and as an object (a new reference). */
void tec_cadence_print(FILE *out, const struct tec_flight *f, const struct tec_cadence *c);
json_t *tec_cadence_json(const struct tec_flight *f, const struct tec_cadence *c);

#endif
