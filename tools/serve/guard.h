/* guard.h - the thread beside the connection thread: it waits for signals, and notices when the
 * connection thread does not come round.
 *
 * A signal ends the program whatever the connection thread does: first in good order, and after
 * TEC_GUARD_GRACE_S seconds (beyond `drain_s`), or at a second signal, at once with exit code 5;
 * what comes within a tenth of a second of the first one is the first one. A
 * turn of the connection thread that takes longer than TEC_GUARD_LATE_MS is told on stderr, and
 * from then on this thread sends the replies that are ready or due. After TEC_GUARD_LOST_S it ends
 * the program with exit code 5, so that robots see their connection end and whoever supervises the
 * server starts it again. */
#ifndef TEC_TOOLS_SERVE_GUARD_H
#define TEC_TOOLS_SERVE_GUARD_H

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { TEC_GUARD_LATE_MS = 1000, TEC_GUARD_LOST_S = 10, TEC_GUARD_GRACE_S = 10 };

struct tec_guard_options {
    void (*end)(void *ending); /* called when a signal has come, to begin the shutdown; any thread,
                                  never blocks. NULL: another guard of the program waits for them */
    void *ending;
    bool (*rescue)(void *user); /* called when the connection thread hangs, to send the replies that
                                   are due; false: impossible now */
    void (*lost)(void *user); /* called before the program ends with exit code 5, to print its last
                                 message */
    void (*look)(void *user); /* called every 100 ms to print reports; or NULL */
    void *user;
    const char
        *verb;   /* in lines of the connection thread on stderr: "tectum VERB: ..."; borrowed */
    int drain_s; /* an end in good order takes so many seconds more */
};

/* Owned by the caller of start until stop; must not move in between. Zeroed is stopped. */
struct tec_guard {
    struct tec_guard_options o;
    struct tec_clock clock;
    sigset_t signals, before;
    pthread_t thread;
    bool started;
    _Atomic bool stopping;
    _Atomic int64_t turn_ns; /* when the connection thread last called tec_guard_turn */
    _Atomic int late;        /* turns that took too long, so far */
};

/* Block SIGINT, SIGTERM and SIGHUP in the calling thread, and in those that it starts from here on.
 * Call it before any other thread is started. */
void tec_guard_hold_signals(struct tec_guard *g);

/* Start the thread; false: none can be started. */
bool tec_guard_start(struct tec_guard *g, const struct tec_guard_options *options);

/* Show that the connection thread is alive. It must call this at least every TEC_GUARD_LATE_MS / 2.
 */
void tec_guard_turn(struct tec_guard *g);

/* Write a text to stderr without the lock that another thread may hold for ever. What does not go
 * out at once is lost: a terminal that stands still does not stop this thread. */
void tec_guard_say(const char *text);

/* End the thread and unblock the signals. This also ends the grace period of a signal. */
void tec_guard_stop(struct tec_guard *g);

#endif
