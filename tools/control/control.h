/* control.h - beside a running robot: a thread that replaces policies, writes down why one was
 * quarantined, and obeys an operator: SIGUSR1 (the flight recorder into a file), SIGUSR2 (the
 * fallback decides), and JSON lines on a Unix socket.
 *
 *     frame thread                         control thread
 *     the planner of a canary   <- atomics ->  builds, hands on and closes policies; dumps
 *                                            answers at most 4 connections, each bounded
 *
 * The frame thread never waits for this one. What the socket takes and answers is described in
 * doc/policies.md, "While the robot runs". */
#ifndef TEC_TOOLS_CONTROL_CONTROL_H
#define TEC_TOOLS_CONTROL_CONTROL_H

#include "tools/cli/open_engine.h"
#include "tools/control/peer.h"
#include "tools/control/socket.h"
#include "tools/record/recording.h"
#include "tools/serve/safety.h"

#include <jansson.h>
#include <pthread.h>

enum { TEC_CONTROL_PEERS = 4, TEC_CONTROL_EVENTS = 16 };

/* How often each signal has come. Zeroed: never. */
struct tec_control_signals {
    _Atomic uint32_t dumps, fallbacks;
};

/* Options of a long-running verb (run, serve). */
struct tec_control_options {
    const char *path;                    /* of the socket; NULL = none */
    const char *dump_dir;                /* NULL: beside the socket, without one nowhere */
    const char *prefix;                  /* of what is written there; NULL = none */
    struct tec_control_signals *signals; /* of several, which all obey them and one `hears`;
                                          * borrowed. NULL: it is alone */
    bool hears;
    struct tec_safety *safety;           /* a server's, borrowed; NULL: there is none */
    const struct tec_recorder *recorder; /* of the frames, borrowed; NULL: there is none */
    enum tec_recording_mode mode;        /* how its frames come */
};

/* The progress of the newest policy that was loaded. */
struct tec_control_load {
    int64_t number;    /* 0 = none was */
    const char *state; /* "built", "trial", "adopted", "rejected", "returned", "rolled back" */
    char policy[64];
    int version;
    bool judged; /* `trial` is final */
    struct tec_canary_trial trial;
    char message[480];
};

/* A dump that a connection has asked for; it is written once the policy's record is held. */
struct tec_control_dump {
    int peer;           /* -1 = none */
    int64_t connection; /* the connection's number: another one may have its place when the answer
                           is ready */
    struct tec_policy *policy;
    int64_t since_ns;
    char path[4096];
};

/* The flight recorder's misses, on the control thread. */
struct tec_control_flight {
    uint64_t next;         /* number of the next event to look at */
    int64_t frame, missed; /* the newest frame; the one that missed */
    int64_t due_ns;        /* when its dump is written; 0: none is due */
    int64_t written_ns;    /* when the last one was */
    int dumps;             /* written because of misses */
};

/* Owned by the caller of open until close; must not move in between. */
struct tec_control {
    struct tec_invocation *call;
    struct tec_control_options options;
    struct tec_canary *canary;       /* borrowed; NULL before start */
    const char *fallback;            /* name of the guard's; "default" */
    const struct tec_engine *engine; /* of its memories, borrowed until close; NULL: none */
    struct tec_opened *program;      /* the same; NULL: there is none */
    struct tec_control_socket socket;
    int signals, stopping;                         /* signalfd, -1: another one's; eventfd */
    struct tec_control_signals come, *all, obeyed; /* all: own or shared */
    struct tec_peer peers[TEC_CONTROL_PEERS];
    struct tec_clock clock;
    pthread_t thread;
    bool opened, started, ended; /* ended: no frame runs any more */

    /* The control thread's. */
    struct tec_control_load load;
    struct tec_control_dump dump;
    int64_t n_events; /* event i is at i mod TEC_CONTROL_EVENTS */
    struct tec_canary_event events[TEC_CONTROL_EVENTS];
    const struct tec_policy *told; /* the policy whose quarantine was reported */
    int64_t struck;                /* frame of the last reported strike */
    int dumps;                     /* written by itself */
    struct tec_control_flight flight;
};

/* Make the socket, before the engine opens, and block SIGUSR1 and SIGUSR2 in every thread that
 * starts later. TEC_INVALID or TEC_IO for a path that cannot be used. */
enum tec_status tec_control_open(struct tec_control *control, struct tec_invocation *call,
                                 const struct tec_control_options *options, struct tec_error *err);

/* Put a canary between loop and policy, and start the thread. No frame runs yet. */
enum tec_status tec_control_start(struct tec_control *control, struct tec_opened *opened,
                                  struct tec_error *err);

/* Start the thread for a canary that is there, made with tec_control_closing and this control. Its
 * fallback's name, "default" without one, is borrowed. */
enum tec_status tec_control_run(struct tec_control *control, struct tec_canary *canary,
                                const char *fallback, struct tec_error *err);

/* End the thread, report the remaining events, remove the socket. No frame runs any more, and the
 * engine is still open. Zeroed is allowed. */
void tec_control_close(struct tec_control *control);

/* --- between its files, all on the control thread ------------------------------------------- */

/* watch.c: take events, tell on stderr what an operator must know, dump what was quarantined. */
void tec_control_watch(struct tec_control *control);
void tec_control_closing(void *control, struct tec_policy *policy);

/* misses.c: write the flight recorder, with a --dump-dir, after a frame has missed; and now. */
void tec_control_look_for_misses(struct tec_control *control);
void tec_control_dump_flight(struct tec_control *control);

/* Continue the requested dump as far as possible now. */
void tec_control_dump(struct tec_control *control);

/* orders.c: answer one request of `n` bytes. */
void tec_control_obey(struct tec_control *control, int peer, const char *line, size_t n);

/* report.c: the status as JSON (new references, NULL without memory). */

json_t *tec_control_status(struct tec_control *control);
char *tec_control_failure(const struct tec_error *err);

#endif
