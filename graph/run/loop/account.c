/* account.c - what a frame cost, whether it missed, and why. */
#include "graph/run/loop/account.h"
#include "graph/run/loop/loop.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/ring_facts.h"

#include <string.h>

void tec_loop_account_open(struct tec_loop *l)
{
    int64_t (*ran)(void) = l->chains->executor->ran;
    l->replayed_ns = l->device_over_ns = 0;
    l->replayed_until = l->record.start_ns;
    l->record.waited_ns = l->record.stood_ns = 0;
    l->ran_ns = ran ? ran() : -1;
}

/* Returns the time of a policy or of the host beyond its usual time. */
static int64_t beyond(const struct tec_histogram *usual, int64_t ns)
{
    int64_t known = usual->n ? tec_histogram_at(usual, 0.5) : 0;
    return ns > known ? ns - known : 0;
}

/* A slow launch on this machine's processors keeps them busy, or other programs do, which leave it
 * a share. Where all threads of the program had less than one part in so many of one processor
 * during the time that launches took too long, it stood still: it was stopped, or the machine was
 * suspended. */
enum { STOOD_STILL = 5 };

static int64_t take_away(int64_t from, int64_t ns)
{
    return from > ns ? from - ns : 0;
}

/* Of the time of launches: what they waited for a memory, and what the program stood still, which
 * is the host's. Neither is the device's. */
static void split_device_time(struct tec_loop *l)
{
    struct tec_frame_record *r = &l->record;
    if (l->ran_ns >= 0) {
        int64_t ran_ns = l->chains->executor->ran() - l->ran_ns;
        int64_t over_ns = beyond(&l->usual_launches, l->replayed_ns);
        int64_t busy_ns = beyond(&l->usual_ran, ran_ns);
        r->stood_ns = busy_ns < over_ns / STOOD_STILL ? over_ns - busy_ns : 0;
        tec_histogram_add(&l->usual_launches, l->replayed_ns);
        tec_histogram_add(&l->usual_ran, ran_ns);
    }
    l->device_over_ns = take_away(l->device_over_ns, r->waited_ns + r->stood_ns);
    l->lost_ns += r->stood_ns;
}

static int64_t at_most(int64_t ns, int64_t most)
{
    return ns < most ? ns : most;
}

/* Time lost by frames that ran while a tick waited: of each at most what it ran since. By a table
 * of costs the device's is counted whole, as golden schedules do. */
static void sum_recent(const struct tec_loop *l, int64_t tick_ns, int64_t lost[TEC_CAUSES])
{
    int n = l->n_recent < TEC_RECENT_FRAMES ? (int)l->n_recent : TEC_RECENT_FRAMES;
    for (int i = 0; i < n; i++) {
        const struct tec_recent *r = &l->recent[i];
        int64_t since = r->end_ns - tick_ns;
        if (since <= 0)
            continue;
        lost[TEC_CAUSE_MEMORY] += at_most(r->waited_ns, since);
        lost[TEC_CAUSE_GPU] += l->table ? r->over_ns : at_most(r->over_ns, since);
        lost[TEC_CAUSE_POLICY] += at_most(beyond(&l->usual_planner, r->planner_ns), since);
        lost[TEC_CAUSE_HOST] += at_most(beyond(&l->usual_host, r->host_ns), since);
    }
}

/* The first that alone explains the overrun; where only all together do, the largest of them; else
 * the plan. */
static enum tec_cause explains(const int64_t lost[TEC_CAUSES], int64_t overrun_ns)
{
    static const enum tec_cause order[] = {TEC_CAUSE_INPUT, TEC_CAUSE_MEMORY, TEC_CAUSE_GPU,
                                           TEC_CAUSE_POLICY, TEC_CAUSE_HOST};
    int64_t sum = 0;
    enum tec_cause largest = TEC_CAUSE_INPUT;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (lost[order[i]] >= overrun_ns)
            return order[i];
        sum += lost[order[i]];
        largest = lost[order[i]] > lost[largest] ? order[i] : largest;
    }
    return sum >= overrun_ns ? largest : TEC_CAUSE_PLAN;
}

/* Time that the frame lost, of its own and while it waited. The device: beyond p99; policy and
 * host: beyond their medians. On a virtual clock those two take no time. */
static enum tec_cause cause_of(const struct tec_loop *l, int64_t overrun_ns)
{
    int64_t lost[TEC_CAUSES] = {0};
    lost[TEC_CAUSE_INPUT] = l->tick->late_ns;
    lost[TEC_CAUSE_MEMORY] = l->record.waited_ns;
    lost[TEC_CAUSE_GPU] = l->device_over_ns;
    lost[TEC_CAUSE_POLICY] = beyond(&l->usual_planner, l->record.planner_ns);
    lost[TEC_CAUSE_HOST] = beyond(&l->usual_host, l->lost_ns);
    sum_recent(l, l->record.tick_ns, lost);
    return explains(lost, overrun_ns);
}

enum tec_cause tec_loop_blame(const struct tec_loop *l, int64_t tick_ns, int64_t due_ns,
                              int64_t now_ns)
{
    int64_t lost[TEC_CAUSES] = {0}, free_ns = tick_ns;
    if (l->n_recent > 0 && l->recent[(l->n_recent - 1) % TEC_RECENT_FRAMES].end_ns > tick_ns)
        free_ns = l->recent[(l->n_recent - 1) % TEC_RECENT_FRAMES].end_ns;
    sum_recent(l, tick_ns, lost);
    lost[TEC_CAUSE_HOST] += beyond(&l->usual_host, now_ns - free_ns);
    return explains(lost, now_ns > due_ns ? now_ns - due_ns : 1);
}

/* Time that was neither the device's nor the planner's nor a wait for inputs, and time in which a
 * frame that was due, and need not wait for others, did not begin although nothing ran. */
static int64_t host_time(const struct tec_loop *l)
{
    const struct tec_frame_record *r = &l->record;
    int64_t own = r->host_ns - r->planner_ns - l->pending_ns;
    int64_t due = r->tick_ns + l->tick->late_ns + l->o.gather_ns;
    if (l->n_recent > 0) {
        int64_t before = l->recent[(l->n_recent - 1) % TEC_RECENT_FRAMES].end_ns;
        due = before > due ? before : due;
    }
    return (own > 0 ? own : 0) + (r->start_ns > due ? r->start_ns - due : 0);
}

/* A ring's launches are two nodes' at once: packed ones count as the prefill's. Those of several
 * rings count as the first one's. */
static int node_of(const struct tec_loop *l, const struct tec_launch_record *launch)
{
    for (int i = 0; i < l->n_rings; i++) {
        const struct tec_ring_state *ring = tec_ring_first(l, i);
        if (launch->node == ring->packed)
            return ring->chain->prefill_node;
        if (launch->node == ring->alone)
            return tec_chain_actor(l, ring->chain);
    }
    return tec_topology_find(l->o.topology, launch->node);
}

/* Each action's miss and its cause. Returns by how much the latest one was late. */
static int64_t judge_actions(struct tec_loop *l)
{
    struct tec_frame_record *r = &l->record;
    int64_t most = 0;
    for (int i = 0; i < r->n_actions; i++) {
        struct tec_action_record *a = &r->actions[i];
        int64_t late = a->missed ? a->release_ns - a->deadline_ns : 0;
        a->missed |= r->failed && a->release_ns < 0;
        a->cause = !a->missed ? TEC_CAUSE_NONE : r->failed ? TEC_CAUSE_GPU : cause_of(l, late);
        most = late > most ? late : most;
        r->missed |= a->missed;
    }
    return most;
}

/* The ring owed an action, and the frame's cause says why there is none. */
static void miss_ring(struct tec_frame_record *r, int action)
{
    r->missed = true;
    r->actions[action].missed = true;
    r->actions[action].cause = r->cause;
}

/* A tick that owes the robot actions, and that no observation came for. */
static bool saw_nothing(const struct tec_loop *l)
{
    bool acted = false;
    for (int i = 0; i < l->record.n_actions; i++)
        acted |= l->record.actions[i].release_ns >= 0;
    return !l->input && !l->tick->rests && l->tick->next_ns != INT64_MAX && l->o.n_actions > 0 &&
           l->n_rings == 0 && !acted;
}

/* A session's own miss. For policies the frame's is that of the session with the most overrun. */
static void judge_session(struct tec_loop *l)
{
    struct tec_frame_record *r = &l->record;
    int64_t overrun = judge_actions(l);
    overrun = r->text_late_ns > overrun ? r->text_late_ns : overrun;
    if (l->tick->next_ns != INT64_MAX && r->end_ns - l->tick->next_ns > overrun)
        overrun = r->end_ns - l->tick->next_ns;
    r->missed |= overrun > 0 || (r->failed && r->actions[0].release_ns < 0);
    r->cause = r->failed ? TEC_CAUSE_GPU : r->missed ? cause_of(l, overrun) : TEC_CAUSE_NONE;
    if (!r->failed && saw_nothing(l)) {
        r->missed = true;
        r->cause = TEC_CAUSE_INPUT;
    }
    for (int i = 0; i < l->n_rings && !r->failed && !l->tick->rests; i++) {
        struct tec_ring_state *ring = tec_ring_own(l, tec_ring_first(l, i));
        if (tec_ring_missed(l, ring, &r->cause))
            miss_ring(r, ring->chain->action);
    }
    r->overrun_us = (overrun + 999) / 1000;
    if (l->result.missed && r->overrun_us <= l->result.overrun_us)
        return;
    l->result.overrun_us = r->overrun_us;
    l->result.missed = r->missed;
    l->result.cause = r->cause;
}

/* Costs learn what ran in this frame, and what did not although requests wait for it. */
static void end_costs(struct tec_loop *l)
{
    double sum = 0.0;
    int n = 0;
    for (int m = 0; m < l->o.n_chains; m++)
        if (l->chains[m].host == &l->chains[m])
            tec_costs_ran(l->chains[m].costs, &sum, &n);
    for (int m = 0; m < l->o.n_chains; m++) {
        const struct tec_chain *c = &l->chains[m];
        bool wanted = false;
        if (c->host != c)
            continue;
        for (int i = 0; i < l->n_live; i++)
            wanted |= tec_chain_of(l, &l->requests[i])->host == c;
        tec_costs_end_frame(c->costs, n ? sum / n : 0.0, wanted);
    }
}

void tec_loop_account(struct tec_loop *l)
{
    struct tec_frame_record *r = &l->record;
    end_costs(l);
    r->host_ns = r->end_ns - r->start_ns - l->replayed_ns;
    l->lost_ns = host_time(l);
    split_device_time(l);
    r->in_flight = l->n_rings ? tec_rings_in_flight(l) : l->n_live;
    memset(&l->result, 0, sizeof l->result);
    for (int i = l->n_own - 1; i >= 0; i--) {
        tec_loop_turn(l, i);
        judge_session(l);
    }
    l->recent[l->n_recent++ % TEC_RECENT_FRAMES] =
        (struct tec_recent){r->end_ns, l->device_over_ns, r->waited_ns, r->planner_ns, l->lost_ns};
    tec_histogram_add(&l->usual_planner, r->planner_ns);
    tec_histogram_add(&l->usual_host, l->lost_ns);
    l->result.total_us = (r->end_ns - r->start_ns) / 1000;
    l->result.tokens = r->tokens;
    l->result.rows = r->rows;
    l->result.snapped = r->snapped;
    l->result.n_nodes = l->o.topology->n_nodes;
    for (int i = 0; i < r->n_launches; i++) {
        int n = node_of(l, &r->launches[i]);
        if (n >= 0)
            l->result.node_us[n] += (r->launches[i].end_ns - r->launches[i].start_ns) / 1000;
    }
}
