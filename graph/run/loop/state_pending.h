/* state_pending.h - between the files of the frame loop: prefills that requests wait for. Owned by
 * the frame thread. */
#ifndef TEC_GRAPH_RUN_LOOP_STATE_PENDING_H
#define TEC_GRAPH_RUN_LOOP_STATE_PENDING_H

#include "graph/run/loop/state.h"

/* A prefill that is not in frames, which requests of one frame wait for, or of all frames up to the
 * next one. Unused: nobody waits, and it is not held. */
struct tec_pending_prefill {
    struct tec_chain *chain;
    int session;
    int64_t frame;          /* that it was asked for in */
    bool held;              /* for requests to come */
    int64_t episode;        /* of a held one's observation */
    int64_t counted;        /* and its number, as the tick's */
    uint64_t key;           /* as of a prefix */
    int waiting, done, now; /* requests; slices that have run, and that run in this frame */
    bool planned;           /* as the decision says; else because a draft needs it at once */
    int region, rows;       /* from its first slice on; -1 = none */
    int n, *ids;            /* its prompt: [text_tokens of its plan] */
    bool told;              /* of what it reads, since somebody waited for it */
    struct tec_text_read reads[TEC_MAX_TEXTS];
    int n_pictures;
    struct tec_pictures_seen seen;
    bool known;      /* their rows were there when it began */
    uint8_t *pixels; /* of all of them, one after the other; NULL = no chain reads any */
    struct tec_memory_prompt *memory; /* its segments; NULL = none. One of the chain's rooms */
};

#endif
