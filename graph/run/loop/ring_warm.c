/* ring_warm.c - rings' launches before the first frame. Both ends of each range are run; what lies
 * between costs as much as a line through them says, until it is measured. */
#include "graph/run/loop/ring_warm.h"

/* What is measured with: the rings of a plan, all of which can take the first one's observation. */
struct warming {
    const struct tec_ring_state *ring;
    const struct tec_prefix_input *prefixes[TEC_MAX_STAGES];
    int prefix; /* its rows */
    struct tec_replay_samples *samples;
};

static int64_t run(const struct warming *w, int enter, int n)
{
    struct tec_row_state rows[TEC_MAX_STAGES], *list[TEC_MAX_STAGES] = {NULL};
    struct tec_ring_move moves[TEC_MAX_STAGES];
    int tokens[TEC_MAX_STAGES];
    tec_launch_ring_full(w->ring->chain->plan, w->prefix, enter, n, rows, list);
    const struct tec_executor *e = w->ring->chain->executor;
    int n_moves =
        e->shifts ? tec_launch_ring_moves(w->ring->chain->plan, list, enter + n, moves) : 0;
    struct tec_launch launch = {.kind = TEC_LAUNCH_packed,
                                .replay = {.samples = w->samples},
                                .packed = {.in = {.prefixes = w->prefixes,
                                                  .rows = list,
                                                  .entering = enter,
                                                  .n = n,
                                                  .moves = moves,
                                                  .n_moves = n_moves},
                                           .tokens = tokens}};
    tec_executor_launch(e, &launch);
    const struct tec_replay *r = &launch.replay;
    return r->status == TEC_OK ? r->end_ns - r->start_ns : -1;
}

/* Points `ends[0]` to `ends[1]` take these times. */
static void line(const struct warming *w, enum tec_cost_kind kind, const int ends[2],
                 const int64_t ns[2])
{
    int width = ends[1] - ends[0];
    if (ns[0] < 0 || ns[1] < 0)
        return; /* the device failed, which whoever warms up looks at */
    for (int r = ends[0]; r <= ends[1]; r++)
        tec_costs_warm(w->ring->chain->costs, kind, r,
                       width ? ns[0] + (ns[1] - ns[0]) * (r - ends[0]) / width : ns[0]);
}

static void warm_packed(const struct warming *w, int enter, int others)
{
    const struct tec_plan_spec *s = &w->ring->chain->plan->spec;
    const int ends[2] = {tec_launch_ring_point(s, enter, 0),
                         tec_launch_ring_point(s, enter, others)};
    int64_t ns[2];
    ns[0] = run(w, enter, 0);
    ns[1] = others > 0 ? run(w, enter, others) : ns[0];
    line(w, TEC_COST_PACKED, ends, ns);
}

static void warm_alone(const struct warming *w, int others)
{
    const int ends[2] = {1, others};
    int64_t ns[2];
    ns[0] = run(w, 0, 1);
    ns[1] = others > 1 ? run(w, 0, others) : ns[0];
    line(w, TEC_COST_DECODE, ends, ns);
}

/* The moves of a full ring, where they are launches of their own. */
static void warm_shift(const struct warming *w)
{
    const struct tec_chain *c = w->ring->chain;
    const struct tec_plan_spec *s = &c->plan->spec;
    struct tec_row_state rows[TEC_MAX_STAGES], *list[TEC_MAX_STAGES] = {NULL};
    struct tec_ring_move moves[TEC_MAX_STAGES];
    struct tec_launch launch = {.kind = TEC_LAUNCH_shift, .shift = {.moves = moves}};
    int64_t tokens = 0;
    tec_launch_ring_full(c->plan, w->prefix, !s->apart, s->stages - !s->apart, rows, list);
    launch.shift.n = tec_launch_ring_moves(c->plan, list, s->stages, moves);
    for (int i = 0; i < launch.shift.n; i++)
        tokens += moves[i].tokens;
    tec_executor_launch(c->executor, &launch);
    if (launch.replay.status == TEC_OK && tokens > 0)
        tec_costs_warm(c->costs, TEC_COST_SHIFT, 0,
                       (launch.replay.end_ns - launch.replay.start_ns) / tokens);
}

void tec_rings_warm(struct tec_loop *l, const struct tec_chain *c,
                    const struct tec_frame_input *input)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    struct warming w = {.ring = c->ring, .samples = l->samples};
    if (l->samples)
        l->samples->known = false;
    for (int i = 0; i < s->rings; i++)
        w.prefixes[i] = &tec_chain_input(l, c, input)->prefix;
    w.prefix = tec_prefix_rows(c->plan, w.prefixes[0]);
    for (int enter = 1; enter <= s->rings && !s->apart; enter++)
        warm_packed(&w, enter, s->rings * (s->stages - 1));
    if (s->stages > !s->apart)
        warm_alone(&w, s->rings * (s->stages - !s->apart));
    if (s->shifts && s->stages > 1 && !c->executor->shifts)
        warm_shift(&w);
}
