/* tick.h - when a frame opens, and what is asked of it. */
#ifndef TEC_GRAPH_RUN_LOOP_TICK_H
#define TEC_GRAPH_RUN_LOOP_TICK_H

#include "graph/load/pipeline.h"

#include <stdbool.h>
#include <stdint.h>

enum { TEC_MAX_TICKING = TEC_MAX_SESSIONS };

/* A request from outside. */
struct tec_ask {
    int decoder;
    int max_tokens; /* 0, or more than the decoder's: the decoder's */
    int prio;       /* 0 first: for policies */
    int64_t id;     /* out: the request, also when it is refused */
    bool refused;   /* out */
    char reason[32];
};

/* When a frame opens, and what comes with it. Times on the frame clock. */
struct tec_tick {
    int64_t frame;       /* number of the tick in its session */
    int session;         /* index below TEC_MAX_TICKING; 0 when there is one */
    const char *name;    /* of the session; NULL when there is one */
    int64_t tick_ns;     /* when it was due */
    int64_t deadline_ns; /* of the first action; -1 = none. Others': as the loop's options say */
    int64_t next_ns;     /* its session's next tick; INT64_MAX: frames follow each other */
    int64_t late_ns;     /* inputs come so long after the tick; 0 = they are here */
    int64_t ahead;       /* how much larger `frame` is than the number of the observation among its
                          * robot's: frames of language alone count as frames, observations that no
                          * frame took do not; 0 where every tick is an observation */
    int64_t counted;     /* the number that every(n) of texts counts by: of the session's newest
                          * observation, in its episode */
    unsigned spawn;      /* bit set of decoders that start a request */
    unsigned mute;       /* of those that a change of the instruction starts nothing of */
    bool rests;          /* the session's rings stand still: language goes on alone, without an
                          * observation */
    int n_asks, n_cancels;
    struct tec_ask *asks;   /* [n_asks] */
    const int64_t *cancels; /* [n_cancels] ids of requests */
    bool *cancelled;        /* [n_cancels] out: it was alive; NULL is allowed */
};

/* The number of a tick's observation among its robot's. */
static inline int64_t tec_tick_observation(const struct tec_tick *tick)
{
    return tick->frame - tick->ahead;
}

/* Observations of a session's newest episode that frames had; of none: zeros. */
struct tec_counted {
    int64_t episode, n;
};

#endif
