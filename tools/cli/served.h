/* served.h - a pipeline that is served: its ports, connection thread, gateways, control and
 * recording around its worker. A server has one for each FILE; the frame thread is of all of them
 * (graph/live/turns.h). In the order of this page, all by the thread that runs the frames. */
#ifndef TEC_TOOLS_CLI_SERVED_H
#define TEC_TOOLS_CLI_SERVED_H

#include "tools/cli/realtime.h"
#include "tools/control/control.h"
#include "tools/gateway/gateways.h"
#include "tools/record/asked.h"
#include "tools/serve/net.h"
#include "tools/serve/worker.h"
#include "tools/tls/front.h"

#include <pthread.h>

enum { TEC_SERVED_PORT = 8000 /* where none is asked for */ };

/* Values of the options of `serve`. */
struct tec_served_options {
    const char *port, *host, *key, *default_prompt;
    struct tec_gateways_asked gateways;
    struct tec_tls_asked tls;
    struct tec_control_options control;
    struct tec_recording_asked seen;
    struct tec_realtime realtime;
    int max_message_mib, max_connections, limit_rows, stall_s, drain_s, actions;
    bool late_ok;
};

/* Must not move between init and finish. */
struct tec_served {
    struct tec_served_options o; /* its own: of several each has other ports and paths */
    struct tec_invocation *call; /* the same: of several its lines on stderr name the pipeline */
    struct tec_invocation own;
    const char *path;
    struct tec_exchange exchange;
    struct tec_worker worker;
    struct tec_net net;
    struct tec_guard guard;
    struct tec_control control;
    struct tec_listener listener;
    struct tec_gateways gateways;
    struct tec_tls_front front;
    struct tec_key key;
    struct tec_view_afar afar;
    bool is_seen_afar; /* other machines may look at the page */
    struct tec_safety_log told;
    pthread_mutex_t telling; /* guards the guard's lines and the summary, which is the last line */
    bool summed;
    json_t *metadata;
    char host[320];   /* of its URL */
    char address[80]; /* the same in numbers */
    int port;
};

void tec_served_init(struct tec_served *s, struct tec_invocation *call,
                     const struct tec_served_options *options, const char *path);

/* It is the i-th of several, of that name: its ports are the i-th from those that are asked for,
 * and its name is in its paths. TEC_NO_MEMORY. */
enum tec_status tec_served_tell_apart(struct tec_served *s, int i, const char *name,
                                      struct tec_error *err);

/* Read what is no model: files of keys, paths. */
enum tec_status tec_served_judge(struct tec_served *s, struct tec_error *err);
/* File descriptors that it needs at most. */
int tec_served_descriptors(const struct tec_served *s);

/* Take the ports and the control socket. `inherited`: the service manager's socket, -1 = none. */
enum tec_status tec_served_bind(struct tec_served *s, int inherited, struct tec_error *err);

/* Open the engine; `before`: the pipeline that was opened before it, NULL = none. */
enum tec_status tec_served_open(struct tec_served *s, struct tec_turns *turns,
                                const struct tec_served *before, struct tec_error *err);

/* Take connections. `end` is called with `user` when a signal has come, from another thread; NULL:
 * signals are another's to wait for. The caller has held them (tec_guard_hold_signals). */
enum tec_status tec_served_start(struct tec_served *s, void (*end)(void *user), void *user,
                                 struct tec_error *err);
/* Schedule the threads that hand actions out. */
enum tec_status tec_served_schedule(struct tec_served *s, const struct tec_scheduling *how,
                                    struct tec_error *err);
/* Print the line that a parent process waits for. */
enum tec_status tec_served_ready(const struct tec_served *s, struct tec_error *err);

/* Any thread, while frames run: the robots leave, if they are given time, then its frames end. */
void tec_served_leave(struct tec_served *s);

/* No frame runs any more: tell the robots, and print the figures. */
void tec_served_end(struct tec_served *s);

/* Close all but the engine, wherever it stands; returns `status`, or that of a recording. Then the
 * engine, the last that was opened first. */
enum tec_status tec_served_close(struct tec_served *s, enum tec_status status,
                                 struct tec_error *err);
void tec_served_finish(struct tec_served *s);

#endif
