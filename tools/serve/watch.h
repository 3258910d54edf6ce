/* watch.h - the server's watchdog: what a client is told when its deadline comes before the
 * engine's answer. Runs on the connection thread, which the engine cannot stop; knows nothing of
 * sockets. */
#ifndef TEC_TOOLS_SERVE_WATCH_H
#define TEC_TOOLS_SERVE_WATCH_H

#include "base/arena.h"
#include "graph/run/action_output.h"
#include "tools/serve/request.h"
#include "tools/serve/slot.h"

/* Replies leave so much before their deadline. */
enum { TEC_WATCH_LEAD_NS = 500000 };

struct tec_watch_options {
    struct tec_action_output_options
        output;          /* of a reply's actions: its rows, `actions` a substitute */
    bool acts;           /* false: the pipeline makes no actions, nothing is held */
    int64_t deadline_ns; /* of requests that name none; 0: whenever they are ready */
};

/* One connection's last command and the deadlines of its requests. Owned by the connection thread.
 */
struct tec_watch {
    struct tec_watch_options o;
    struct tec_slot *slot;
    struct tec_action_output *output;
    struct tec_arena *moment;           /* borrowed; scratch */
    struct tec_request_message options; /* of the newest whole message */
    bool wants_actions, wants_text;     /* of the request with the engine, or that was last */
    uint32_t resets;                    /* of the exchange's safety, as far as it is followed */
    bool told;                          /* its own actions were told at the deadline */
    bool replied;                       /* the reply is the watch's */
};

enum tec_status tec_watch_create(struct tec_watch *w, const struct tec_watch_options *options,
                                 struct tec_slot *slot, struct tec_arena *arena,
                                 struct tec_arena *moment, struct tec_error *err);

/* Somebody else connects. */
void tec_watch_open(struct tec_watch *w);

/* The slot's message is whole: it goes to the engine, or waits (tec_slot_whole). */
void tec_watch_whole(struct tec_watch *w, int64_t now);

/* The engine has given the job back; true: there is a reply that somebody wants. */
bool tec_watch_collected(struct tec_watch *w, int64_t now);

/* The reply has left (tec_slot_sent). */
void tec_watch_sent(struct tec_watch *w, int64_t now);

/* Answer what is due; true: there is a reply now. */
bool tec_watch_look(struct tec_watch *w, int64_t now);

/* When to look again; INT64_MAX: when something happens. */
int64_t tec_watch_next(const struct tec_watch *w);

#endif
