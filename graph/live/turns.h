/* turns.h - frames of several runtimes on one thread and one device: whose turn it is.
 *
 * Of the runtimes for which something has come the earliest deadline is first, but no runtime has a
 * second frame while another waits that waited at the first. So nobody waits for more than one
 * frame of each other one, behind the one that runs, however much that one is asked and whatever
 * its deadlines are. While one waits, language of a frame that runs ends behind the launch that it
 * has begun (struct tec_loop_others), and frames of language alone begin only when nothing has come
 * to anybody. */
#ifndef TEC_GRAPH_LIVE_TURNS_H
#define TEC_GRAPH_LIVE_TURNS_H

#include "graph/live/runtime.h"

enum { TEC_MAX_TURNS = 16 };

/* Zeroed: none has joined. Must not move while frames run. */
struct tec_turns {
    int n;
    struct tec_runtime *of[TEC_MAX_TURNS]; /* borrowed */
    int64_t frames;                        /* of what has come, of all, so far */
    int64_t newest[TEC_MAX_TURNS];         /* whose each one's last was; 0 = none */
    int64_t since[TEC_MAX_TURNS];          /* behind which it has waited; -1: it does not */
    struct tec_bell bell;                  /* of all that have joined */
    _Atomic bool drains; /* runtimes end one by one; else the first that ends, ends all */
};

/* Before its engine is opened, with `others` as an option: the runtime, which is initialised, has
 * turns among these. At most TEC_MAX_TURNS. */
void tec_turns_join(struct tec_turns *turns, struct tec_runtime *rt);
struct tec_loop_others tec_turns_others(struct tec_runtime *rt);

/* Be the frame thread of all of them, whose sources are set, until they have ended. */
void tec_turns_work(struct tec_turns *turns);

#endif
