/* decided.h - what was decided in a frame, by whoever decided then, and a planner that decides it
 * again.
 *
 * What is kept is what has passed the loop's gate and has run: the default plan where a policy
 * failed, and of a frame whose language was cut short what of it came to be. Beside the plan stand
 * the answers that were given before it, among them the clock's about deadlines. The planner's
 * answers pass the same gate again. Frame thread; nothing here allocates, locks or waits. */
#ifndef TEC_GRAPH_LIVE_DECIDED_H
#define TEC_GRAPH_LIVE_DECIDED_H

#include "graph/run/launch/events.h"

enum {
    TEC_DECIDED_REFUSED = 256,
    TEC_DECIDED_REASON = 32,
    TEC_DECIDED_GIVEN_UP = 2 * TEC_MAX_ROWS, /* late ones, and as many to make room */
    TEC_DECIDED_POLICY = 64,
};

/* A request that was given up for its deadline, when it was that session's turn. */
struct tec_decided_late {
    int64_t request;
    int session;
};

/* An arrival that was refused. */
struct tec_decided_refusal {
    int64_t request;
    char reason[TEC_DECIDED_REASON];
};

/* A request that was given up to make room, and for which arrival. */
struct tec_decided_eviction {
    int64_t request, arrival;
};

/* The answers of one frame. */
struct tec_decided {
    bool whole;    /* there was room for all of it, and a plan was among it */
    int64_t frame; /* the frame and the session of its first tick */
    int session;
    char policy[TEC_DECIDED_POLICY]; /* who was asked; where it failed, the default plan has run */
    int n_late, n_refused, n_evicted;
    struct tec_decided_late late[TEC_DECIDED_GIVEN_UP];
    struct tec_decided_refusal refused[TEC_DECIDED_REFUSED];
    struct tec_decided_eviction evicted[TEC_DECIDED_GIVEN_UP];
    int64_t requests[TEC_MAX_ROWS]; /* [decision.n_rows] whose the rows are, ascending */
    struct tec_decision decision;
};

/* Hears a loop's events, and keeps what was decided in its newest frame. */
struct tec_deciding {
    struct tec_decided now; /* whole behind the frame's end */
    int n_nodes;            /* of the topology */
    bool planned, ended;
    bool ran[TEC_MAX_ROWS];    /* of the rows: it had a launch */
    int slices[TEC_MAX_NODES]; /* that ran of those planned of a node's prefills */
};

/* Before the first frame. */
void tec_deciding_init(struct tec_deciding *d, int n_nodes);
void tec_deciding_hear(struct tec_deciding *d, const struct tec_event *event);

/* Decides frames as they were decided. */
struct tec_following {
    const struct tec_decided *decided; /* of the next frame; NULL: it is not known. Borrowed */
    /* Decides where it is not known, or other requests live. It is asked and told in every frame,
     * so that its state is that of one that has decided them all. */
    struct tec_planner otherwise;
    int n_nodes;
    bool followed;               /* the plan of the newest frame */
    struct tec_decision unheard; /* what `otherwise` plans where frames are followed */
};

/* The planner, valid as long as `f`. */
struct tec_planner tec_following_planner(struct tec_following *f);

#endif
