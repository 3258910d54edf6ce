/* ring_own.h - between the files of rings: the sequences of one forward, and what is told of it. */
#ifndef TEC_GRAPH_RUN_LOOP_RING_OWN_H
#define TEC_GRAPH_RUN_LOOP_RING_OWN_H

#include "graph/run/loop/state_rings.h"

static inline const struct tec_plan_spec *tec_ring_spec(const struct tec_ring_state *ring)
{
    return &ring->chain->plan->spec;
}

/* Which of the topology's rings it is, and whose. */
static inline int tec_ring_index(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    return (int)(ring - l->rings) / l->sessions;
}

static inline int tec_ring_session(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    return (int)(ring - l->rings) % l->sessions;
}

/* Does its observation enter with forward `at` of the frame? */
static inline bool tec_ring_enters(const struct tec_ring_state *ring, int at)
{
    return at == 0 && ring->input;
}

/* Tokens of a sequence whose keys are there. */
static inline int tec_ring_stored(const struct tec_ring_item *it)
{
    return it->row.prefix + (it->stage > 0 ? it->stage - 1 : 0);
}

/* ring_moves.c: places a sequence's next row: its newest token is the next input. */
void tec_ring_place(const struct tec_ring_state *ring, struct tec_ring_item *it);

/* ring_moves.c: whether a request of this frame, of the session whose turn it is, is to stand on
 * the prefix of a chain. */
bool tec_ring_asked(const struct tec_loop *l, const struct tec_chain *c);
/* Lists what forward `at` of the frame moves to flight.regions; returns how many moves. */
int tec_ring_list_moves(struct tec_loop *l, int at);
/* The items behind a forward of a ring, before what is whole leaves: a copy for requests where an
 * observation entered, and what moved with the forward is told. */
void tec_ring_add_told(struct tec_loop *l, const struct tec_ring_state *ring, bool enters);
/* And behind that: a launch that moves keys, where the forward did not. */
void tec_ring_add_shift(struct tec_loop *l, const struct tec_ring_state *ring);

/* ring_tell.c: what is done to keys and values of a ring, to one sequence of it; a forward, whose
 * replay it was; the tokens that it made. */
void tec_ring_tell_kv(const struct tec_loop *l, const struct tec_ring_state *ring,
                      struct tec_event event, struct tec_ring_event more);
void tec_ring_tell_item(const struct tec_loop *l, const struct tec_ring_state *ring,
                        const char *what, const struct tec_ring_item *it);
void tec_ring_tell_forward(const struct tec_loop *l, const struct tec_ring_flight *f,
                           const struct tec_replay *r);
void tec_ring_tell_tokens(const struct tec_loop *l, const struct tec_ring_flight *f, int64_t at_ns);
/* Keys that were moved, by a launch of that time. */
void tec_ring_tell_copy(const struct tec_loop *l, const struct tec_ring_state *ring,
                        const struct tec_ring_move *moves, int n, const struct tec_replay *r);

static inline struct tec_ring_event tec_ring_event(void)
{
    return (struct tec_ring_event){.slot = -1, .base = -1};
}

#endif
