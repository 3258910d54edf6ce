/* arrivals.h - when language is asked for: seeded generators of requests, frame by frame.
 *
 * A specification is one or more parts joined by "+":
 *
 *     uniform:INTERVAL    a request every INTERVAL frames: 0.25 is four a frame, 4 one in four
 * frames poisson:LAMBDA      LAMBDA a frame on average, drawn anew in each frame bursty:N,M N at
 * once every M frames lengths:A,B,SHARE   a request has B tokens with probability SHARE, else A
 *     cancel:SHARE,M      a request is cancelled M frames after it came with probability SHARE
 *
 * At most one of the first three; without one it is uniform:1. What is drawn for a frame depends on
 * (seed, frame) alone, so frames may be asked for in any order. */
#ifndef TEC_TOOLS_MEASURE_ARRIVALS_H
#define TEC_TOOLS_MEASURE_ARRIVALS_H

#include "base/error.h"

#include <stdint.h>

enum { TEC_MAX_ARRIVALS = 64 }; /* in one frame */

/* One request: tokens at most, and frames until it is cancelled (at least 1; 0 = it is not). */
struct tec_arrival {
    int max_tokens, cancel_after;
};

enum tec_arrival_kind { TEC_ARRIVE_UNIFORM, TEC_ARRIVE_POISSON, TEC_ARRIVE_BURSTY };

/* Plain data: copy it as you like. */
struct tec_arrivals {
    enum tec_arrival_kind kind;
    double interval;        /* uniform, in frames */
    double lambda;          /* poisson, a frame */
    int burst, burst_every; /* bursty */
    int max_tokens;         /* where no lengths are given */
    int lengths[2];         /* 0 = not given */
    double long_share;
    double cancel_share;
    int cancel_after;
    uint64_t seed;
};

/* Read a specification. `max_tokens` (1 to 65536) is the length of requests where the text gives
 * none. TEC_INVALID names the place in the text, what stands there and what is allowed. Reads
 * numbers as the C locale writes them. */
enum tec_status tec_arrivals_parse(struct tec_arrivals *arrivals, const char *text, int max_tokens,
                                   uint64_t seed, struct tec_error *err);

/* The requests of frame `frame` (from 0); returns how many. More than TEC_MAX_ARRIVALS do not
 * come. Thread-safe. */
int tec_arrivals_at(const struct tec_arrivals *arrivals, int64_t frame,
                    struct tec_arrival out[TEC_MAX_ARRIVALS]);

#endif
