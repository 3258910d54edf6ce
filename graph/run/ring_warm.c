/* ring_warm.c - a ring's launches before the first frame. Both ends of each range are run; what
 * lies between costs as much as a line through them says, until it is measured. */
#include "graph/run/state.h"

#include <string.h>

static int64_t run(struct tec_loop *l, const struct tec_frame_input *input, int n)
{
    struct tec_row_state rows[TEC_MAX_STAGES], *list[TEC_MAX_STAGES] = {NULL};
    struct tec_row_state entering =
        tec_ring_entering(l->ring.chain->plan, l->ring.chain->prefix.rows);
    struct tec_executor *e = l->ring.chain->executor;
    int tokens[TEC_MAX_STAGES], made[TEC_MAX_STAGES];
    struct tec_replay replay = {0};
    tec_ring_full(l->ring.chain->plan, l->ring.chain->prefix.rows, n, rows, list);
    if (input) {
        struct tec_ring_launch launch = {.input = tec_chain_input(l, l->ring.chain, input),
                                         .entering = &entering,
                                         .rows = list,
                                         .n = n,
                                         .tokens = tokens};
        e->packed(e->self, &launch);
        replay = launch.replay;
    } else {
        e->decode(e->self, list, n, 1, tokens, made, &replay);
    }
    return replay.status == TEC_OK ? replay.end_ns - replay.start_ns : -1;
}

/* Rows `low` and `high` take these times. */
static void line(struct tec_loop *l, enum tec_cost_kind kind, const int ends[2],
                 const int64_t ns[2])
{
    int width = ends[1] - ends[0];
    if (ns[0] < 0 || ns[1] < 0)
        return; /* the device failed, which whoever warms up looks at */
    for (int r = ends[0]; r <= ends[1]; r++)
        tec_costs_warm(l->ring.chain->costs, kind, r,
                       width ? ns[0] + (ns[1] - ns[0]) * (r - ends[0]) / width : ns[0]);
}

void tec_ring_warm(struct tec_loop *l, const struct tec_frame_input *input)
{
    int stages = l->ring.chain->plan->spec.stages;
    const int packed[2] = {0, stages - 1}, decode[2] = {1, stages - 1};
    int64_t ns[2];
    ns[0] = run(l, input, packed[0]);
    ns[1] = stages > 1 ? run(l, input, packed[1]) : ns[0];
    line(l, TEC_COST_PACKED, packed, ns);
    if (stages == 1)
        return;
    ns[0] = run(l, NULL, decode[0]);
    ns[1] = stages > 2 ? run(l, NULL, decode[1]) : ns[0];
    line(l, TEC_COST_DECODE, decode, ns);
    if (!l->ring.chain->plan->spec.shifts)
        return;
    struct tec_ring_move moves[TEC_MAX_STAGES];
    struct tec_replay replay = {0};
    tec_ring_moves_full(l->ring.chain->prefix.rows, stages - 1, moves);
    l->ring.chain->executor->shift(l->ring.chain->executor->self, moves, stages - 1, &replay);
    if (replay.status == TEC_OK)
        tec_costs_warm(l->ring.chain->costs, TEC_COST_SHIFT, 0,
                       (replay.end_ns - replay.start_ns) /
                           ((int64_t)(stages - 1) * l->ring.chain->prefix.rows));
}
