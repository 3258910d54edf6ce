/* launch_ring.h - one replay of a ring's parts. As launch.h: nothing allocates or blocks. */
#ifndef TEC_GRAPH_RUN_LAUNCH_RING_H
#define TEC_GRAPH_RUN_LAUNCH_RING_H

#include "graph/run/launch.h"

/* Tokens moved from one region to another. */
struct tec_ring_move {
    int from, to, tokens;
};

/* The sequences of a forward: one that enters with its prefix, and others with a row each. A
 * sequence lies in its region from the first slot on; `tail` follows the prefix. */
struct tec_ring_rows {
    const struct tec_prefix_input *prefix;
    struct tec_row_state *entering;
    struct tec_row_state *const *rows; /* [n], n < stages */
    int n;
};

/* Run PACKED. tokens[0 .. n] get the next token of each, states are as after it. */
void tec_launch_packed(struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_ring_rows *in, int *tokens, struct tec_replay *replay);

/* Run SHIFT: n <= stages moves, in order; a later one may overwrite what an earlier one has read.
 */
void tec_launch_shift(struct tec_plan *plan, struct tec_plan_part *part,
                      const struct tec_ring_move *moves, int n, struct tec_replay *replay);

/* A full ring, to measure with: a sequence of `prefix` tokens that enters in region 0, and n
 * others, listed too, each in the region after that of the one before and a token further. */
struct tec_row_state tec_ring_entering(const struct tec_plan *plan, int prefix);
void tec_ring_full(const struct tec_plan *plan, int prefix, int n, struct tec_row_state *rows,
                   struct tec_row_state **list);

/* Lists the moves after a forward of a full ring whose slots are stages: n moves, n < stages,
 * oldest first. The move from stage s holds its prefix and s tokens. */
void tec_ring_moves_full(int prefix, int n, struct tec_ring_move *moves);

#endif
