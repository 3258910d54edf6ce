/* measure.c - what launches took, added to what is known of their costs. */
#include "graph/run/loop/measure.h"
#include "graph/run/loop/expected.h"

/* A launch of `times` steps at most, of which `steps` were made. What is longer than the p99 known
 * before is the device's; `known_us`: what a table says of one. Replays before the first frame only
 * say what to expect. */
static void measure(struct tec_loop *l, const struct tec_chain *c, enum tec_cost_kind kind,
                    int rows, int times, int steps, int64_t ns, double known_us)
{
    if (l->table) {
        double known = known_us * 1000.0 * times;
        if (known > 0.0 && (double)ns > known)
            l->device_over_ns += ns - (int64_t)known;
    } else if (steps > 0 && l->warming) {
        tec_costs_warm(c->costs, kind, rows, ns / steps);
    } else if (steps > 0) {
        l->device_over_ns += tec_costs_add(c->costs, kind, rows, ns / steps) * steps;
    }
}

void tec_loop_measure(struct tec_loop *l, const struct tec_chain *c, enum tec_cost_kind kind,
                      int rows, int times, int steps, int64_t ns)
{
    double known = l->table ? tec_loop_launch_cost(l, c, kind, rows, 0.99) : 0.0;
    measure(l, c, kind, rows, times, steps, ns, known);
}

/* The device's time, once where launches of two partitions overlap. */
void tec_loop_replayed(struct tec_loop *l, int64_t start, int64_t end)
{
    int64_t from = start > l->replayed_until ? start : l->replayed_until;
    if (end <= from)
        return;
    l->replayed_ns += end - from;
    l->replayed_until = end;
}

void tec_loop_measure_prefix(struct tec_loop *l, const struct tec_chain *c,
                             const struct tec_replay *r, bool action, int n)
{
    int64_t seen = r->mark_ns[TEC_MARK_PREFILL];
    int at = tec_costs_action(c->costs, c->plan->spec.frame_action, n);
    tec_loop_measure(l, c, TEC_COST_PREFILL, n > 1 ? n : 0, 1, 1, seen - r->start_ns);
    if (action)
        tec_loop_measure(l, c, TEC_COST_ACTION, at, 1, 1, r->mark_ns[TEC_MARK_ACTION] - seen);
}

void tec_loop_measure_ring(struct tec_loop *l, const struct tec_ring_state *ring,
                           enum tec_cost_kind kind, const struct tec_replay *r, int n)
{
    int64_t ns = r->end_ns - r->start_ns;
    int times = kind == TEC_COST_SHIFT ? n : 1, rows = kind == TEC_COST_SHIFT ? 0 : n;
    measure(l, ring->chain, kind, rows, times, times, ns,
            tec_loop_ring_cost(l, ring, kind, rows, 0.99));
}
