/* watch.h - the server's watchdog: what a client is told when its deadline comes before the
 * engine's answer. Runs on the connection thread, which the engine cannot stop; knows nothing of
 * sockets. */
#ifndef TEC_TOOLS_SERVE_WATCH_H
#define TEC_TOOLS_SERVE_WATCH_H

#include "base/arena.h"
#include "graph/live/action_output.h"
#include "tools/serve/request.h"
#include "tools/serve/slot.h"

/* Replies leave this long before their deadline. */
enum { TEC_WATCH_LEAD_NS = 500000 };

struct tec_watch_options {
    struct tec_action_output_options
        output;          /* a reply has its `rows`, a substitute its `actions` */
    bool acts;           /* false: the pipeline makes no actions, nothing is held */
    const char *node;    /* that makes them; borrowed */
    int64_t deadline_ns; /* deadline of requests that name none; 0: replies leave whenever they are
                            ready */
};

/* One connection's last command and the deadlines of its requests. Owned by the connection thread.
 */
struct tec_watch {
    struct tec_watch_options o;
    struct tec_slot *slot;
    struct tec_action_output *output;
    struct tec_watch *next;             /* of all connections', in a circle; borrowed */
    char name[TEC_REQUEST_NAME + 1];    /* the first session_id that was said; it stays when the
                                         * client has left */
    struct tec_arena *moment;           /* borrowed; scratch */
    struct tec_request_message options; /* of the newest whole message */
    bool wants_actions, wants_text,
        wants_streams; /* of the request in the engine, or of the last one */
    uint32_t resets;   /* the exchange's count of resets that this connection has followed */
    bool told;         /* the request's own actions were sent at the deadline */
    bool replied;      /* the watch has made the reply */
    bool was_stopped;  /* the server, before the newest actions were handed out */
};

enum tec_status tec_watch_create(struct tec_watch *w, const struct tec_watch_options *options,
                                 struct tec_slot *slot, struct tec_arena *arena,
                                 struct tec_arena *moment, struct tec_error *err);

/* Start afresh for a new connection. */
void tec_watch_open(struct tec_watch *w);

/* The slot's message is complete: it goes to the engine, or waits (tec_slot_whole). A connection
 * that says the session_id of one that has left goes on with its last command and its misses. */
void tec_watch_whole(struct tec_watch *w, int64_t now);

/* The engine has given the job back; true: there is a reply that somebody wants. */
bool tec_watch_collected(struct tec_watch *w, int64_t now);

/* The reply has left (tec_slot_sent). */
void tec_watch_sent(struct tec_watch *w, int64_t now);

/* Answer what is due; true: there is a reply now. */
bool tec_watch_look(struct tec_watch *w, int64_t now);

/* The time of the next tec_watch_look; INT64_MAX: not before the next event. */
int64_t tec_watch_next(const struct tec_watch *w);

#endif
