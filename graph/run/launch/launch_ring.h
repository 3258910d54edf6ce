/* launch_ring.h - one replay of a ring's parts. As launch.h: nothing allocates or blocks. */
#ifndef TEC_GRAPH_RUN_LAUNCH_LAUNCH_RING_H
#define TEC_GRAPH_RUN_LAUNCH_LAUNCH_RING_H

#include "graph/kv/stages.h"
#include "graph/run/launch/launch.h"

/* Tokens moved from one region to another, from its first slot on. */
struct tec_ring_move {
    int from, to, tokens;
};

/* The sequences of a forward: those that enter with their prefixes, one of each ring, then others
 * with a row each. A sequence lies in its region from the first slot on; `tail` follows the
 * prefix. */
struct tec_ring_rows {
    const struct tec_prefix_input *const *prefixes; /* [entering] */
    struct tec_row_state *const *rows;              /* [entering + n]; n < stages of each ring */
    int entering, n;
    /* Behind the attention of each layer, in order; a later one may overwrite what an earlier one
     * has read. At most one to each region; n_moves <= stages of all rings. */
    const struct tec_ring_move *moves; /* [n_moves] */
    int n_moves;
};

/* Run PACKED; at least one enters. tokens[0 .. entering + n - 1] get the next token of each, states
 * are as after it. */
void tec_launch_packed(struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_ring_rows *in, int *tokens, struct tec_replay *replay);

/* Run DECODE for a token of each of n sequences; none enters. As above. */
void tec_launch_advance(struct tec_plan *plan, struct tec_plan_part *part,
                        const struct tec_ring_rows *in, int *tokens, struct tec_replay *replay);

/* Run SHIFT, of an interpreted plan: n <= stages moves, in order; a later one may overwrite what an
 * earlier one has read.
 */
void tec_launch_shift(struct tec_plan *plan, struct tec_plan_part *part,
                      const struct tec_ring_move *moves, int n, struct tec_replay *replay);

/* Which point of the costs a forward is: by rows, those of more prefills behind those of fewer. A
 * forward of one prefill is as many as it has rows of others, one of none is below 0. */
int tec_launch_ring_point(const struct tec_plan_spec *spec, int entering, int others);

/* Full rings, to measure with, all rows listed: first `enter` sequences of `prefix` tokens that
 * enter, each in the first region of its ring; then n others, ring by ring, each in the region
 * after that of the one before and a token further. Where prefills are launches of their own the
 * others have the first region, too. */
void tec_launch_ring_full(const struct tec_plan *plan, int prefix, int enter, int n,
                          struct tec_row_state *rows, struct tec_row_state **list);

/* The rows of a forward without prefills, of its point. */
int tec_launch_ring_rows_of(const struct tec_plan_spec *spec, int point);

/* The moves with such a forward of n rows where a ring's regions are its stages: those of all
 * sequences but the ones that leave, oldest first. Returns how many: moves [n]. */
int tec_launch_ring_moves(const struct tec_plan *plan, struct tec_row_state *const *rows, int n,
                          struct tec_ring_move *moves);

#endif
