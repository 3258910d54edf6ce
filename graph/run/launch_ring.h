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

#endif
