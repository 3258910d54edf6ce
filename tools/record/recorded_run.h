/* recorded_run.h - what came to a robot and when, and what it decided then: a recording without its
 * pictures, all of it at once. */
#ifndef TEC_TOOLS_RECORD_RECORDED_RUN_H
#define TEC_TOOLS_RECORD_RECORDED_RUN_H

#include "tools/record/flight.h"
#include "tools/record/recorded.h"

/* A request that a frame began. */
struct tec_recorded_request {
    int64_t id, frame; /* frame: of its session, in which it was born */
    int node;          /* index into the flight's nodes */
    int made;          /* tokens that were recorded */
    int length;        /* tokens of its text, which came to its own end; 0: it did not */
    int64_t now;       /* for who runs it again: its id there; -1 = it has none yet */
};

/* A session's tick, and the frame that it opened. Times on the frame clock. */
struct tec_recorded_part {
    int session;
    int64_t number, frame, ahead, counted, tick_ns, late_ns;
    int64_t deadline_ns; /* after the tick; -1 = none; INT64_MIN: the recording does not say */
    unsigned spawn, mute;
    bool observed, rests;
    enum tec_recorded_reset reset;
    uint64_t text; /* alike where the texts among its inputs are */
    int n_asks, n_cancels;
    const struct tec_input_ask *asks;
    const int64_t *cancels;
    size_t first_request, n_requests;
    const json_t *was;                     /* the message of its frame; NULL: it is missing */
    const struct tec_flight_frame *flight; /* NULL: its events are missing */
};

/* The ticks of sessions that had a frame together: [first, first + n) of the parts. */
struct tec_recorded_moment {
    size_t first;
    int n;
};

/* Owned by the caller of open until close. */
struct tec_recorded_run {
    struct tec_arena arena;
    struct tec_flight flight; /* its file is open: for attachments */
    json_t *frames;           /* keeps what parts point to */
    size_t n_parts, n_moments, n_requests;
    struct tec_recorded_part *parts;
    struct tec_recorded_moment *moments;
    struct tec_recorded_request *requests;
};

/* Read a recording. TEC_MALFORMED where it has no ticks: a dump of the flight recorder. */
enum tec_status tec_recorded_run_open(struct tec_recorded_run *run, const char *path,
                                      struct tec_heap *heap, struct tec_error *err);
void tec_recorded_run_close(struct tec_recorded_run *run); /* zeroed is allowed */

#endif
