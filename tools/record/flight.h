/* flight.h - what a flight recorder kept, read back from a file: events, and the frames and
 * launches that they tell of. */
#ifndef TEC_TOOLS_RECORD_FLIGHT_H
#define TEC_TOOLS_RECORD_FLIGHT_H

#include "base/arena.h"
#include "graph/live/recorder.h"
#include "tools/record/mcap_read.h"

#include <jansson.h>

enum { TEC_FLIGHT_KINDS_OF_LAUNCH = 256 };

/* What launches of a node usually take, with as many rows and steps. */
struct tec_usual {
    size_t n;
    int64_t p50_us, p99_us;
};

/* A frame of a session. Times on the frame clock; the numbers are those of its record. */
struct tec_flight_frame {
    int64_t frame, tick_ns, start_ns, end_ns; /* end_ns -1: the recorder ends within it */
    int64_t late_ns;                          /* of its inputs */
    int64_t overrun_us, planner_us, host_us, slack_us, age_us, deadline_us; /* deadline -1: none */
    int64_t waited_us, stood_us; /* of its launches: for a memory; the program stood still */
    int session, tokens, rows, in_flight, snapped;
    bool missed;
    const char *cause;  /* "none" */
    size_t first, last; /* its events lie between these, both included */
    size_t launch;      /* the first launch that ended after it began */
};

struct tec_flight_launch {
    size_t frame; /* index into frames; SIZE_MAX: of none that was kept whole */
    int node, rows, padded, k, lane;
    int usual;        /* index of what is usual for it */
    const char *what; /* of a ring: the launch; else "" */
    int64_t start_ns, end_ns;
};

/* Owned by the caller of open until close. */
struct tec_flight {
    struct tec_arena arena;
    struct tec_mcap_reader file;
    json_t *about; /* the message /tectum/recording; an empty object where there is none */
    int64_t wall_ns;
    int n_nodes;
    const char *nodes[TEC_MAX_NODES]; /* the pipeline's; behind them launches of no node, by name */
    const char *words[TEC_FLIGHT_WORDS + 1]; /* by an event's `what`; "" where the file lacks it */
    uint64_t first_event;                    /* number of the first in its recorder; of a file 0 */
    size_t n_events, n_frames, n_launches;
    struct tec_flight_event *events;
    struct tec_flight_frame *frames;
    struct tec_flight_launch *launches;
    int n_usual;
    struct tec_usual usual[TEC_FLIGHT_KINDS_OF_LAUNCH]; /* [n_usual] by a launch's `usual` */
    int64_t usual_planner_us, usual_host_us;            /* medians of frames */
};

/* Read a recording, or a dump of the flight recorder. TEC_MALFORMED where there is no event in it.
 * What a cut file lacks is said in file.damage. */
enum tec_status tec_flight_open(struct tec_flight *f, const char *path, struct tec_heap *heap,
                                struct tec_error *err);
/* The same of what a running robot has written: it may not have done anything, which gives no
 * frames. */
enum tec_status tec_flight_open_idle(struct tec_flight *f, const char *path, struct tec_heap *heap,
                                     struct tec_error *err);
/* The same of a recorder of this process, as it is now; `about` is what a recording says of itself,
 * borrowed. A recorder without events gives no frames. */
enum tec_status tec_flight_now(struct tec_flight *f, const struct tec_recorder *recorder,
                               json_t *about, struct tec_heap *heap, struct tec_error *err);
/* The same of its newest `most` events alone. */
enum tec_status tec_flight_newest(struct tec_flight *f, const struct tec_recorder *recorder,
                                  json_t *about, size_t most, struct tec_heap *heap,
                                  struct tec_error *err);
void tec_flight_close(struct tec_flight *f); /* zeroed is allowed */

/* usual.c: what is usual, found when a flight is opened; of a launch. */
enum tec_status tec_flight_find_usual(struct tec_flight *f, struct tec_error *err);
const struct tec_usual *tec_flight_usual(const struct tec_flight *f,
                                         const struct tec_flight_launch *launch);

/* The first of a frame's launches from this one on, beginning with frame->launch; SIZE_MAX: there
 * is none. The first launch of any frame that ended after this frame's tick. */
size_t tec_flight_next(const struct tec_flight *f, const struct tec_flight_frame *frame, size_t at);
size_t tec_flight_since(const struct tec_flight *f, const struct tec_flight_frame *frame);

/* The name of a node, "" for none. */
const char *tec_flight_node(const struct tec_flight *f, int node);

#endif
