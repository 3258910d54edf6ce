/* hard.c - prefill and actions; the actions leave here, before anything else is looked at. */
#include "graph/run/state.h"

const char *tec_loop_node_name(const struct tec_loop *l, int node)
{
    return node >= 0 ? l->o.topology->nodes[node].name : "";
}

struct tec_launch_record *tec_loop_note(struct tec_loop *l, const char *node, int64_t start_ns,
                                        int64_t end_ns)
{
    struct tec_frame_record *r = &l->record;
    if (r->n_launches == TEC_MAX_LAUNCHES)
        return &r->launches[TEC_MAX_LAUNCHES - 1];
    struct tec_launch_record *launch = &r->launches[r->n_launches++];
    *launch = (struct tec_launch_record){.node = node,
                                         .rows = 1,
                                         .batch = 1,
                                         .k = 1,
                                         .request = -1,
                                         .start_ns = start_ns,
                                         .end_ns = end_ns};
    return launch;
}

/* Does an action node run in this frame? */
static bool acts(const struct tec_loop *l, int action)
{
    int node = l->o.actions[action].node;
    return !(l->o.topology->nodes[node].optional && l->decision.nodes[node].skip);
}

/* Of the one that goes with the prefill; that can be left out where there is a prefill alone. */
static bool frame_acts(const struct tec_loop *l, const struct tec_chain *c)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    return s->n_actions && s->frame_action >= 0 && (acts(l, c->acts[0]) || !s->isolated);
}

static bool in_frame(const struct tec_loop *l, const struct tec_chain *c, int action)
{
    return l->o.actions[action].at == c->plan->spec.frame_action;
}

/* Before the first prefix there is none of an earlier frame. */
static bool runs_early(const struct tec_loop *l, const struct tec_chain *c, int action)
{
    return l->o.actions[action].prev && c->prefix.region >= 0 && acts(l, action);
}

/* Are there keys for it, or will there be when the texts that it waits for are made? */
static bool has_keys(const struct tec_loop *l, int action)
{
    const struct tec_action *a = &l->o.actions[action];
    int first = a->waits_for - 1;
    bool said = first >= 0 && (a->texts >> first & 1U) && tec_loop_says(l, first);
    return !a->texts || a->or_prefix || said || tec_text_keys_of(l, action);
}

static bool runs_late(const struct tec_loop *l, const struct tec_chain *c, int action)
{
    return !l->o.actions[action].prev && !in_frame(l, c, action) && acts(l, action) &&
           has_keys(l, action);
}

int tec_loop_actions_due(const struct tec_loop *l, const struct tec_chain *c)
{
    int n = frame_acts(l, c);
    for (int i = 0; i < c->n_actions; i++)
        n += runs_early(l, c, c->acts[i]) || runs_late(l, c, c->acts[i]);
    return n;
}

/* A launch of a hard node; `n`: of the observations of several sessions. */
static void launch_event(const struct tec_loop *l, int node, int64_t start, int64_t end, int n)
{
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_START,
                                        .node = node,
                                        .request = -1,
                                        .observations = n,
                                        .t_ns = start});
    tec_loop_tell(
        l, (struct tec_event){
               .kind = TEC_EVENT_END, .node = node, .request = -1, .t_ns = end, .since_ns = start});
}

void tec_loop_release(struct tec_loop *l, int action, int64_t seen, int64_t captured_ns)
{
    struct tec_action_record *a = &l->record.actions[action];
    a->release_ns = tec_loop_now(l);
    a->seen = seen;
    a->captured_ns = captured_ns;
    a->age_us = (a->release_ns - captured_ns) / 1000;
    a->slack_us = a->deadline_ns >= 0 ? (a->deadline_ns - a->release_ns) / 1000 : 0;
    a->missed = a->deadline_ns >= 0 && a->release_ns > a->deadline_ns;
    if (l->o.released)
        l->o.released(l->o.user, action, l->chains[l->o.actions[action].chain].chunk, &l->record);
}

/* The chunk of the session whose turn it is: of the launch's observation i. False: the device has
 * failed on the way, and what came are no actions. */
static bool release(struct tec_loop *l, struct tec_chain *c, int action,
                    const struct tec_launch *launch, int i)
{
    const struct tec_text_keys *k = tec_text_keys_of(l, action);
    c->executor->chunk(c->executor->self, launch, i, c->chunk);
    if (tec_loop_failed(l))
        return false;
    l->record.to_come = --l->actions_due + tec_rings_to_come(l, NULL);
    tec_loop_release(l, action, k ? k->seen : c->prefix.frame,
                     k ? k->captured_ns : c->prefix.captured_ns);
    return true;
}

static void release_event(const struct tec_loop *l, int action)
{
    const struct tec_action_record *a = &l->record.actions[action];
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_RELEASE,
                                        .node = l->o.actions[action].node,
                                        .request = -1,
                                        .frames = (int)(l->record.frame - a->seen),
                                        .t_ns = a->release_ns,
                                        .since_ns = a->captured_ns,
                                        .flag = a->missed,
                                        .chunk = l->chains[l->o.actions[action].chain].chunk});
}

static void failed(struct tec_loop *l, const struct tec_replay *replay)
{
    l->record.failed = true;
    tec_loop_replayed(l, replay->start_ns, replay->end_ns);
}

/* What an action node stands on: a text's keys, else the prefix. */
static struct tec_action_launch stand(const struct tec_loop *l, const struct tec_chain *c,
                                      int action, const struct tec_chain_input *in)
{
    const struct tec_text_keys *k = tec_text_keys_of(l, action);
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

/* An action node of its own launch. */
static void run_action(struct tec_loop *l, struct tec_chain *c, int action,
                       const struct tec_frame_input *input)
{
    const struct tec_chain_input *in = tec_chain_input(l, c, input);
    struct tec_launch launch = {.kind = TEC_LAUNCH_action, .action = stand(l, c, action, in)};
    const struct tec_replay *replay = &launch.replay;
    int node = l->o.actions[action].node;
    tec_executor_launch(c->executor, &launch);
    if (replay->status != TEC_OK || !release(l, c, action, &launch, 0)) {
        failed(l, replay);
        return;
    }
    launch_event(l, node, replay->start_ns, replay->end_ns, 1);
    tec_loop_note(l, tec_loop_node_name(l, node), replay->start_ns, replay->end_ns);
    release_event(l, action);
    tec_loop_measure_action(l, tec_chain_index(l, c), replay, launch.action.at);
}

/* Is the action that goes with the prefill left out of this frame? */
static bool leaves_out(const struct tec_loop *l, const struct tec_chain *c)
{
    return c->plan->spec.n_actions > 0 && c->plan->spec.frame_action >= 0 && !frame_acts(l, c);
}

/* What they made is told: the launch once, the chunk of each session for itself. */
static void tell_prefix(struct tec_loop *l, struct tec_chain *c, const int *who, int n,
                        const struct tec_replay *replay)
{
    int64_t seen = replay->mark_ns[TEC_MARK_PREFILL], acted = replay->mark_ns[TEC_MARK_ACTION];
    int padded = n > 1 ? tec_plan_part(c->plan, TEC_PART_FRAME, n)->batch : 1;
    tec_loop_turn(l, who[0]);
    launch_event(l, c->prefill_node, replay->start_ns, seen, n);
    struct tec_launch_record *note =
        tec_loop_note(l, tec_loop_node_name(l, c->prefill_node), replay->start_ns, seen);
    note->rows = n;
    note->batch = padded;
    if (!frame_acts(l, c))
        return;
    int node = l->o.actions[c->acts[0]].node;
    launch_event(l, node, seen, acted, n);
    note = tec_loop_note(l, tec_loop_node_name(l, node), seen, acted);
    note->rows = n;
    note->batch = padded;
    for (int i = 0; i < n; i++) {
        tec_loop_turn(l, who[i]);
        release_event(l, c->acts[0]);
    }
}

/* The prefill of the sessions in `who`, at least one, and the action node that goes with it. */
static void run_prefix(struct tec_loop *l, struct tec_chain *c, const int *who, int n)
{
    struct tec_observed each[TEC_MAX_SESSIONS] = {{.region = -1}};
    struct tec_launch launch = {.kind = TEC_LAUNCH_prefix,
                                .prefix = {.each = each, .n = n, .acts = !leaves_out(l, c)}};
    bool action = frame_acts(l, c);
    for (int i = 0; i < n; i++) {
        tec_loop_turn(l, who[i]);
        each[i] = (struct tec_observed){c->prefix.region, tec_chain_input(l, c, l->input)};
    }
    tec_executor_launch(c->executor, &launch);
    bool works = launch.replay.status == TEC_OK;
    for (int i = 0; i < n && works && action; i++) {
        tec_loop_turn(l, who[i]);
        works = release(l, c, c->acts[0], &launch, i);
    }
    if (!works) {
        failed(l, &launch.replay);
        return;
    }
    tell_prefix(l, c, who, n, &launch.replay);
    tec_loop_measure_prefix(l, tec_chain_index(l, c), &launch.replay, action, n);
}

/* The sessions whose chain is prefilled in this frame; returns how many. */
static int seen_now(struct tec_loop *l, const struct tec_chain *c, int *who)
{
    int n = 0;
    for (int i = 0; i < l->n_own; i++) {
        tec_loop_turn(l, i);
        if (l->input && c->prefix.frame == l->record.frame)
            who[n++] = i;
    }
    return n;
}

/* More observations than the largest captured launch takes are several launches; so are those of an
 * executor that merges nothing, and of a frame that leaves the action out. */
static void run_prefixes(struct tec_loop *l, struct tec_chain *c)
{
    int who[TEC_MAX_SESSIONS], n = seen_now(l, c, who);
    int most = c->executor->together && !leaves_out(l, c) ? tec_plan_together(c->plan) : 1;
    if (n > 0)
        tec_loop_recompute(l, c, tec_chain_input(l, c, l->input)->memory);
    for (int at = 0; at < n && !l->record.failed; at += most)
        run_prefix(l, c, who + at, n - at < most ? n - at : most);
}

void tec_loop_run_early(struct tec_loop *l, struct tec_chain *c,
                        const struct tec_frame_input *input)
{
    for (int i = 0; i < c->n_actions && !l->record.failed; i++)
        if (runs_early(l, c, c->acts[i]))
            run_action(l, c, c->acts[i], input);
}

/* The texts of all sessions are made before the first action that waits for one. */
static void run_late(struct tec_loop *l, struct tec_chain *c, int session)
{
    tec_loop_turn(l, session);
    for (int i = 0; i < c->n_actions && l->input && !l->record.failed; i++) {
        if (!runs_late(l, c, c->acts[i]))
            continue;
        if (l->o.actions[c->acts[i]].waits_for)
            tec_loop_say(l, c);
        tec_loop_turn(l, session);
        if (!l->record.failed && has_keys(l, c->acts[i]))
            run_action(l, c, c->acts[i], l->input);
    }
}

void tec_loop_run_hard(struct tec_loop *l, struct tec_chain *c)
{
    run_prefixes(l, c);
    for (int s = 0; s < l->n_own; s++)
        run_late(l, c, s);
    tec_loop_say(l, c);
}
