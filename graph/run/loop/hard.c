/* hard.c - prefill and actions; the actions leave here, before anything else is looked at.
 *
 * The items of a chain in frames: actions on an earlier prefix, a region for the new one, prefills
 * of all sessions, then the actions behind them, and the texts that hard nodes wait for. */
#include "graph/run/loop/hard.h"
#include "graph/run/loop/acting.h"
#include "graph/run/loop/decision.h"
#include "graph/run/loop/kept_chunks.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/pictures.h"
#include "graph/run/loop/prefix.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/text_first.h"
#include "graph/run/loop/text_keys.h"
#include "graph/run/loop/texts.h"

/* The chunk of the session whose turn it is: of the launch's observation i. False: the device has
 * failed on the way, and what came are no actions. */
static bool release(struct tec_loop *l, struct tec_chain *c, int action,
                    const struct tec_launch *launch, int i)
{
    const struct tec_text_keys *k = tec_loop_text_keys_of(l, action);
    c->executor->chunk(c->executor->self, launch, i, c->chunk);
    if (tec_loop_failed(l))
        return false;
    l->record.to_come = --l->actions_due + tec_rings_to_come(l, NULL);
    int64_t seen = k ? k->seen : c->prefix.frame;
    int64_t captured_ns = k ? k->captured_ns : c->prefix.captured_ns;
    tec_loop_release(l, action, seen, captured_ns);
    tec_kept_chunks_keep(l, action, seen, captured_ns);
    return true;
}

/* `again`: how many times the chunk had left before; `over`: observations since it left first. */
static void release_event(const struct tec_loop *l, int action, int again, int64_t over)
{
    const struct tec_action_record *a = &l->record.actions[action];
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_RELEASE,
                                        .node = l->o.actions[action].node,
                                        .request = -1,
                                        .frames = (int)(l->record.frame - a->seen),
                                        .done = again,
                                        .k = (int)over,
                                        .t_ns = a->release_ns,
                                        .since_ns = a->captured_ns,
                                        .flag = a->missed,
                                        .chunk = l->chains[l->o.actions[action].chain].chunk});
}

/* What an action node stands on: a text's keys, else the prefix. */
static struct tec_action_launch stand(const struct tec_loop *l, const struct tec_chain *c,
                                      int action, const struct tec_chain_input *in)
{
    const struct tec_text_keys *k = tec_loop_text_keys_of(l, action);
    if (k)
        return (struct tec_action_launch){.at = l->o.actions[action].at,
                                          .region = k->row.region,
                                          .rows = k->row.prefix,
                                          .text = k->text,
                                          .tail = k->row.tail,
                                          .input = in,
                                          .state = k->state};
    return (struct tec_action_launch){.at = l->o.actions[action].at,
                                      .region = c->prefix.region,
                                      .rows = c->prefix.rows,
                                      .input = in,
                                      .state = c->keeps ? c->prefix.state : in->state};
}

/* One of this frame's prefix runs if it has keys by now. */
static bool next_action(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_chain *c = it->chain;
    if (!l->o.actions[it->of].prev && !tec_loop_runs_late(l, c, it->of))
        return false;
    *it->launch = (struct tec_launch){
        .kind = TEC_LAUNCH_action, .action = stand(l, c, it->of, tec_chain_input(l, c, l->input))};
    return true;
}

static void settle_action(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_replay *r = &it->launch->replay;
    int node = l->o.actions[it->of].node;
    if (!release(l, it->chain, it->of, it->launch, 0))
        return;
    tec_loop_tell_launch(l, (struct tec_event){.node = node, .request = -1, .observations = 1}, 1,
                         r->start_ns, r->end_ns);
    release_event(l, it->of, 0, 0);
    tec_loop_measure(l, it->chain, TEC_COST_ACTION, it->launch->action.at, 1, 1,
                     r->end_ns - r->start_ns);
}

const struct tec_scheduled_kind tec_scheduled_action = {
    .next = next_action, .settle = settle_action, .once = true};

static bool next_again(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_kept_chunk *k = tec_kept_chunk_leave(l, it->of);
    l->record.to_come = --l->actions_due + tec_rings_to_come(l, NULL);
    tec_loop_release(l, it->of, k->seen, k->captured_ns);
    release_event(l, it->of, k->left - 1, tec_kept_chunk_over(l, k));
    return false;
}

const struct tec_scheduled_kind tec_scheduled_again = {.next = next_again};

/* --- prefills -------------------------------------------------------------------------------- */

static bool next_open(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_chain *c = it->chain;
    tec_loop_drop_prefix(l, c);
    tec_loop_open_prefix(l, c, l->input, tec_kv_pool_take(&c->plan->prefixes));
    tec_loop_tell_prefix(l, "alloc", c, c->prefix.rows, tec_loop_now(l));
    return false;
}

const struct tec_scheduled_kind tec_scheduled_open = {.next = next_open};

/* Is the action that goes with the prefill left out of this frame? */
static bool leaves_out(const struct tec_loop *l, const struct tec_chain *c)
{
    return c->plan->spec.n_actions > 0 && c->plan->spec.frame_action >= 0 &&
           !tec_loop_frame_acts(l, c);
}

/* Where nothing else ever reads its keys, the prefill rests with the action. */
static bool rests(const struct tec_loop *l, const struct tec_chain *c)
{
    return leaves_out(l, c) && !c->plan->spec.isolated;
}

/* Finds the sessions whose chain is prefilled in this frame. */
static void see(struct tec_loop *l, const struct tec_chain *c)
{
    l->n_seen = 0;
    for (int i = 0; i < l->n_own; i++) {
        tec_loop_turn(l, i);
        if (l->input && c->prefix.frame == l->record.frame)
            l->seen[l->n_seen++] = i;
    }
}

/* More observations than the largest captured launch takes are several launches; so are those of an
 * executor that merges nothing, and of a frame that leaves the action out. */
static bool next_prefix(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_chain *c = it->chain;
    bool out = leaves_out(l, c);
    int most = c->executor->together && !out ? tec_plan_together(c->plan) : 1;
    if (it->at == 0)
        see(l, c);
    it->first += it->n;
    it->n = l->n_seen - it->first < most ? l->n_seen - it->first : most;
    for (int i = 0; i < it->n; i++) {
        tec_loop_turn(l, l->seen[it->first + i]);
        l->observed[i] = tec_pictures_observed(l, c, c->prefix.region);
        tec_loop_recompute(l, c, l->observed[i].input->memory);
    }
    *it->launch = (struct tec_launch){
        .kind = TEC_LAUNCH_prefix,
        .prefix = {
            .each = l->observed, .n = it->n, .acts = !out, .more = it->first + it->n < l->n_seen}};
    return it->n > 0;
}

/* What they made is told: the launch once, the chunk of each session for itself. */
static void settle_prefix(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_chain *c = it->chain;
    const struct tec_replay *r = &it->launch->replay;
    const int *who = l->seen + it->first;
    int n = it->n, padded = n > 1 ? tec_plan_part(c->plan, TEC_PART_FRAME, n)->batch : 1;
    int64_t seen = r->mark_ns[TEC_MARK_PREFILL], acted = r->mark_ns[TEC_MARK_ACTION];
    bool action = tec_loop_frame_acts(l, c);
    tec_loop_turn(l, who[0]);
    tec_pictures_keep(c, tec_pictures_of(l, &l->observed->input->prefix));
    for (int i = 0; i < n && action; i++) {
        tec_loop_turn(l, who[i]);
        if (!release(l, c, c->acts[0], it->launch, i))
            return;
    }
    struct tec_event of = {.node = c->prefill_node, .request = -1, .observations = n};
    tec_loop_turn(l, who[0]);
    tec_loop_tell_launch(l, of, padded, r->start_ns, seen);
    if (action) {
        of.node = l->o.actions[c->acts[0]].node;
        tec_loop_tell_launch(l, of, padded, seen, acted);
    }
    for (int i = 0; i < n && action; i++) {
        tec_loop_turn(l, who[i]);
        release_event(l, c->acts[0], 0, 0);
    }
    tec_loop_measure_prefix(l, c, r, action, n);
}

const struct tec_scheduled_kind tec_scheduled_prefix = {.next = next_prefix,
                                                        .settle = settle_prefix};

/* --- a chain --------------------------------------------------------------------------------- */

/* What needs no prefix of this frame: chunks that leave again, actions on an earlier frame's. Then
 * the region for the new one; true: there is one. */
static bool add_early(struct tec_loop *l, struct tec_chain *c, int who)
{
    for (int i = 0; i < c->n_actions; i++)
        if (tec_loop_goes_on(l, c->acts[i]))
            tec_schedule_add(l, &tec_scheduled_again, c, who, c->acts[i]);
    for (int i = 0; i < c->n_actions; i++)
        if (tec_loop_runs_early(l, c, c->acts[i]))
            tec_schedule_add(l, &tec_scheduled_action, c, who, c->acts[i]);
    if (!tec_loop_prefills(l, c) || rests(l, c))
        return false;
    tec_loop_hear(l, c);
    tec_schedule_add(l, &tec_scheduled_open, c, who, 0);
    return true;
}

/* The texts of all sessions are made before the first action that waits for one. */
static void add_late(struct tec_loop *l, struct tec_chain *c, int who)
{
    for (int i = 0; i < c->n_actions; i++) {
        const struct tec_action *a = &l->o.actions[c->acts[i]];
        if (a->prev || tec_loop_in_frame(l, c, c->acts[i]) || tec_loop_goes_on(l, c->acts[i]))
            continue;
        if (a->waits_for && c->says)
            tec_loop_add_texts(l, c, who, c->acts[i]);
        tec_schedule_add(l, &tec_scheduled_action, c, who, c->acts[i]);
    }
}

void tec_loop_add_hard(struct tec_loop *l, struct tec_chain *c)
{
    bool prefills = false;
    for (int i = 0; i < l->n_own; i++) {
        tec_loop_turn(l, i);
        if (l->input)
            prefills |= add_early(l, c, i);
    }
    c->parted = prefills && c->executor->start;
    if (c->parted)
        tec_schedule_add(l, &tec_scheduled_fork, c, l->n_own - 1, 0);
    if (!rests(l, c))
        tec_schedule_add(l, &tec_scheduled_prefix, c, 0, 0);
    for (int i = 0; i < l->n_own; i++) {
        tec_loop_turn(l, i);
        if (l->input)
            add_late(l, c, i);
    }
    if (c->says)
        tec_loop_add_texts(l, c, l->n_own - 1, -1);
}
