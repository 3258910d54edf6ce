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

/* pending_prefill.c: prefills that requests wait for. Of chains that hold theirs: an observation
 * has come, before its requests. */
void tec_pending_prefills_begin(struct tec_loop *l);
/* Is there one that a request could join? */
bool tec_pending_prefill_there(const struct tec_loop *l, int chain);
void tec_pending_prefills_drop(struct tec_loop *l); /* the session's that are held */
void tec_pending_prefill_join(struct tec_loop *l, struct tec_request *r); /* at its birth */
void tec_pending_prefill_leave(struct tec_loop *l, struct tec_request *r, int64_t at_ns);
/* What it waits for, its own before its draft's; NULL: nothing. */
const struct tec_pending_prefill *tec_pending_prefill_of(const struct tec_loop *l,
                                                         const struct tec_request *r);
int tec_pending_prefill_left(const struct tec_loop *l, const struct tec_request *r); /* slices */
void tec_pending_prefill_plan(struct tec_loop *l); /* which slices run in this frame */
/* Does a request, or its draft, wait for it? The row of the first that does, in the order of
 * launches; -1 = none. */
bool tec_pending_prefill_is_of(const struct tec_loop *l, const struct tec_request *r,
                               const struct tec_pending_prefill *a);
int tec_pending_prefill_row(const struct tec_loop *l, const struct tec_pending_prefill *a);
/* The observation as it was kept. */
struct tec_chain_input tec_pending_prefill_input(const struct tec_pending_prefill *a);
/* A request, or its draft, waits no more: `pending` of either becomes -1. */
void tec_pending_prefill_had(struct tec_loop *l, int *pending, int64_t at_ns);
/* Has it a prefix by the time that language runs? */
bool tec_pending_prefill_ready(const struct tec_loop *l, const struct tec_request *r);
/* The segments of that prefill of a chain which is begun next for a session (-1: for any); NULL:
 * there are none. */
const struct tec_memory_prompt *tec_pending_prefill_memory(const struct tec_loop *l,
                                                           const struct tec_chain *c, int session);

/* slices.c: one that a hard text waits for goes in (-1: none), once a frame. */
void tec_slices_first(struct tec_loop *l, int pending);

#endif
