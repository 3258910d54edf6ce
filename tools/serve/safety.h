/* safety.h - what a server's threads share about deadlines: how many were missed and why, and
 * whether the robot was stopped.
 *
 * A stop is the server's: it stays for every connection, present or new, until somebody resets it
 * (a request with `reset`, or `tectum policy reset`). Everything here is atomic; a reader may see a
 * count before its cause. */
#ifndef TEC_TOOLS_SERVE_SAFETY_H
#define TEC_TOOLS_SERVE_SAFETY_H

#include "graph/run/loop/loop.h"
#include "graph/transform/limits.h"

#include <stdatomic.h>
#include <stddef.h>

/* Bytes of a session_id that a stop names. */
enum { TEC_SAFETY_SESSION = 80 };

struct tec_safety {
    _Atomic int64_t misses[TEC_CAUSES];    /* by cause; of NONE there are none */
    _Atomic int64_t not_begun[TEC_CAUSES]; /* of those the ones that no frame was run for */
    _Atomic int64_t frame, late_us;        /* of the last miss; frame -1: no frame was run for it */
    _Atomic int cause;                     /* enum tec_cause of the last miss */
    /* Requests that were skipped and are not counted yet; the newest one's times. */
    _Atomic int64_t skipped, skipped_received_ns, skipped_due_ns;
    _Atomic int64_t limited, limited_values; /* requests with actions beyond the limits; values */
    _Atomic int64_t refused;                 /* those requests whose actions were held or stopped */
    _Atomic int64_t left_out; /* requests whose frame left the actions out: no misses */
    /* The first value beyond the limits in the last such request, as in struct tec_beyond. */
    _Atomic int limit_kind, limit_row, limit_column;
    _Atomic double limit_value, limit;
    _Atomic bool stopped;
    _Atomic uint32_t stops, resets; /* number of stops and of resets so far */
    /* The last stop, as in struct tec_safety_stop. */
    _Atomic int stop_why, stop_limit;
    const char *_Atomic stop_node;
    _Atomic int64_t stop_number, stop_client;
    _Atomic bool stop_left; /* that client has left since */
    _Atomic char stop_session[TEC_SAFETY_SESSION + 1];
};

/* Why a robot stopped. */
enum tec_safety_why {
    TEC_STOP_MISSES,   /* too many in a row without actions of their own */
    TEC_STOP_LEFT_OUT, /* ... and the last one's were left out by a policy */
    TEC_STOP_LIMITS    /* ... and the last one's were beyond the robot's limits */
};

struct tec_safety_stop {
    enum tec_safety_why why;
    int limit;           /* how many in a row are bridged; 0: one stops */
    const char *node;    /* whose actions they are; borrowed as long as the counts live */
    int64_t number;      /* the last one: a connection's request, or a tick */
    int64_t client;      /* the connection's number; 0: a tick's */
    const char *session; /* its session_id; "" = none */
    bool left;           /* the client has left */
};

/* Count a request, or a tick, whose own actions did not leave by its deadline; frame -1: no frame
 * was run for it. */
void tec_safety_miss(struct tec_safety *s, int64_t frame, enum tec_cause cause, int64_t late_ns);

/* Note a request for which no frame was run, due and answered while frames of others ran. Why is
 * known when the running frame has ended: it is counted then. */
void tec_safety_skip(struct tec_safety *s, int64_t received_ns, int64_t due_ns);

/* Engine thread, between frames: count what was noted, as the loop says at `now`. */
void tec_safety_settle(struct tec_safety *s, const struct tec_loop *loop, int64_t now);

/* Count a request whose actions were beyond the robot's limits. */
void tec_safety_limit(struct tec_safety *s, const struct tec_beyond *beyond);

int64_t tec_safety_misses(const struct tec_safety *s);

/* Stop the robot, for every connection. A stop that holds stays as it was told first. */
void tec_safety_stop(struct tec_safety *s, const struct tec_safety_stop *stop);

/* What stopped a robot: commands refused by its limits, left out by a policy, or not there in time,
 * by the rules of `output`. Of whom and when is the caller's to say. */
struct tec_action_output_options;
struct tec_safety_stop tec_safety_stop_of(const struct tec_beyond *beyond, bool left_out,
                                          const struct tec_action_output_options *output);

/* A client has left: the stop's line says so if it is that one's. */
void tec_safety_leave(struct tec_safety *s, int64_t client);

/* "'act' had no actions of its own 4 times in a row, limit = 3: the last was not there in time", or
 * "'act' was beyond the robot's limits, which stops it". The length. */
int tec_safety_stop_text(const struct tec_safety_stop *stop, char *text, size_t room);

/* Go on after a stop. */
void tec_safety_reset(struct tec_safety *s);

/* The counts at the last report. Owned by the reporting thread. */
struct tec_safety_log {
    int64_t told, limited;         /* misses, requests beyond limits */
    int64_t due_ns, limits_due_ns; /* earliest time of the next report */
    uint32_t stops;
    bool stopped;
};

/* One line of text about misses or limits since the last line, at most one a second, and about a
 * stop, also one that was reset since; 0: there is nothing to tell now. The length otherwise, with
 * its line end. It begins with "tectum" and `who`. */
int tec_safety_tell(const struct tec_safety *s, struct tec_safety_log *log, int64_t now,
                    const char *who, char *text, size_t room);

#endif
