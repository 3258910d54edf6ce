/* acting.h - between the files of the frame loop: which action nodes of a chain run in the frame of
 * the session whose turn it is. */
#ifndef TEC_GRAPH_RUN_LOOP_ACTING_H
#define TEC_GRAPH_RUN_LOOP_ACTING_H

#include "graph/run/loop/decision.h"
#include "graph/run/loop/kept_chunks.h"

/* Is an action node left in the frame by its decision? */
static inline bool tec_loop_decided(const struct tec_loop *l, int action)
{
    return !tec_loop_leaves_out(l, l->o.actions[action].node);
}

/* Does it run in this frame? */
static inline bool tec_loop_acts(const struct tec_loop *l, int action)
{
    return tec_loop_decided(l, action) && !tec_kept_chunk_of(l, action);
}

/* Does its newest chunk leave again, because it does not run? */
static inline bool tec_loop_goes_on(const struct tec_loop *l, int action)
{
    return tec_loop_decided(l, action) && tec_kept_chunk_of(l, action);
}

/* Does the one that goes with the prefill run? */
static inline bool tec_loop_frame_acts(const struct tec_loop *l, const struct tec_chain *c)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    return s->n_actions && s->frame_action >= 0 && tec_loop_acts(l, c->acts[0]);
}

/* Does it go with the prefill? */
static inline bool tec_loop_in_frame(const struct tec_loop *l, const struct tec_chain *c,
                                     int action)
{
    return l->o.actions[action].at == c->plan->spec.frame_action;
}

/* Does it run on an earlier frame's prefix? Before the first one there is none. */
static inline bool tec_loop_runs_early(const struct tec_loop *l, const struct tec_chain *c,
                                       int action)
{
    return l->o.actions[action].prev && c->prefix.region >= 0 && tec_loop_acts(l, action);
}

/* Does it run on this frame's prefix, or on a text, and are its keys there? */
bool tec_loop_runs_late(const struct tec_loop *l, const struct tec_chain *c, int action);

/* Chunks that the hard nodes of a chain make. */
int tec_loop_actions_due(const struct tec_loop *l, const struct tec_chain *c);

/* Tells which actions the decision leaves out. */
void tec_loop_leave_actions_out(struct tec_loop *l);

/* The chunk of an action node in its chain's leaves: of the observation of frame `seen`. */
void tec_loop_release(struct tec_loop *l, int action, int64_t seen, int64_t captured_ns);

#endif
