/* queue.h - a robot's queue of actions: when to ask, what goes along, what a reply becomes, and the
 * action of an instant. Nothing here reads a clock or a socket. */
#ifndef TEC_TOOLS_CLIENT_QUEUE_H
#define TEC_TOOLS_CLIENT_QUEUE_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/triple.h"
#include "tools/client/plan.h"
#include "tools/client/times.h"

/* One thread asks and takes replies (the network's), one takes actions (the control loop's); they
 * share `plans` and the atomic members alone. */
struct tec_client_queue {
    struct tec_client_rules rules;
    double threshold;
    int first_delay, given_rows;
    int64_t hold_ns; /* negative: as long as it takes */
    enum tectum_client_dry on_dry;
    enum tectum_client_rtc rtc;
    struct tec_heap *heap;
    bool *discrete; /* [most_columns] what rules.discrete is; NULL without such columns */

    /* The network's. */
    struct tec_client_plan plan; /* what was posted last */
    struct tec_client_durations delays;
    int64_t chunks;
    bool cold; /* no reply has come on this connection */

    struct tec_triple between;
    struct tec_client_plan plans[TEC_TRIPLE_PLACES];
    _Atomic int64_t episode; /* raised by whoever begins a new one */
    _Atomic int64_t dry;     /* turns without a row */

    /* The control loop's. */
    double *last; /* [most_columns] the action that was given last */
    int n_last;   /* its columns; 0: none yet in this episode */
    int64_t last_ns, last_episode;
    struct tectum_client_action last_told;
};

/* Checks the options, which need no defaults filled in, and takes all memory. TEC_INVALID names the
 * option. */
enum tec_status tec_client_queue_init(struct tec_client_queue *q,
                                      const struct tectum_client_options *options,
                                      struct tec_heap *heap, struct tec_error *err);
void tec_client_queue_finish(struct tec_client_queue *q);

/* --- the network's thread --- */

/* A connection begins: its first reply tells nothing of the later ones' times. */
void tec_client_queue_connected(struct tec_client_queue *q);

/* When the next chunk is to be asked for: an instant that may have passed. */
int64_t tec_client_queue_due(struct tec_client_queue *q);

/* Whether a chunk of an observation could still be of use. */
bool tec_client_queue_wants(struct tec_client_queue *q, int64_t captured_ns, int64_t now);

/* What goes along with a request. */
struct tec_client_ahead {
    const double *values; /* [rows, columns], the queue's until the next reply; rows 0: nothing */
    int rows, columns;
    int delay; /* of them, carried out until the reply; at most rows */
};

struct tec_client_ahead tec_client_queue_ahead(struct tec_client_queue *q, int64_t captured_ns);

/* A reply's chunk; `number` is given here. False: no row of it is of use. */
bool tec_client_queue_reply(struct tec_client_queue *q, struct tec_client_chunk chunk,
                            int64_t episode, int64_t now);

/* A reply says that the server has stopped the robot. */
void tec_client_queue_stopped(struct tec_client_queue *q, int64_t episode);

/* --- any thread --- */

void tec_client_queue_reset(struct tec_client_queue *q);

/* --- the control loop --- */

/* The action of `now` into `action` [room], and where it comes from. TEC_TIME: none;
 * TEC_INVALID: room is less than told->columns. Takes no lock and no memory. */
enum tec_status tec_client_queue_next(struct tec_client_queue *q, int64_t now, double *action,
                                      int room, struct tectum_client_action *told);

#endif
