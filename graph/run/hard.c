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

static bool acts(const struct tec_loop *l)
{
    int node = l->o.action_node;
    bool skipped = node >= 0 && l->o.topology->nodes[node].optional && l->decision.nodes[node].skip;
    return l->o.plan->spec.steps > 0 && !(skipped && l->o.plan->spec.isolated);
}

static void launch_event(const struct tec_loop *l, int node, int64_t start, int64_t end)
{
    tec_loop_tell(
        l, (struct tec_event){.kind = TEC_EVENT_START, .node = node, .request = -1, .t_ns = start});
    tec_loop_tell(
        l, (struct tec_event){
               .kind = TEC_EVENT_END, .node = node, .request = -1, .t_ns = end, .since_ns = start});
}

/* False: the device has failed on the way, and what came are no actions. */
static bool release(struct tec_loop *l, const struct tec_frame_input *input)
{
    struct tec_frame_record *r = &l->record;
    l->o.executor.actions(l->o.executor.self, l->chunk);
    if (tec_loop_failed(l))
        return false;
    r->release_ns = tec_loop_now(l);
    r->seen = r->frame;
    r->captured_ns = input->captured_ns;
    r->age_us = (r->release_ns - input->captured_ns) / 1000;
    r->slack_us = r->deadline_ns >= 0 ? (r->deadline_ns - r->release_ns) / 1000 : 0;
    if (l->o.released)
        l->o.released(l->o.user, l->chunk, r);
    return true;
}

static void failed(struct tec_loop *l, const struct tec_replay *replay)
{
    l->record.failed = true;
    tec_loop_replayed(l, replay->start_ns, replay->end_ns);
}

void tec_loop_run_hard(struct tec_loop *l, const struct tec_frame_input *input)
{
    struct tec_replay replay = {0};
    const struct tec_frame_record *r = &l->record;
    bool action = acts(l);
    if (l->o.executor.recompute)
        l->o.executor.recompute(l->o.executor.self, &l->decision);
    l->o.executor.prefix(l->o.executor.self, action ? TEC_PART_FRAME : TEC_PART_PREFIX, l->region,
                         input, &replay);
    if (replay.status != TEC_OK || (action && !release(l, input))) {
        failed(l, &replay);
        return;
    }
    int64_t seen = replay.mark_ns[TEC_MARK_PREFILL], acted = replay.mark_ns[TEC_MARK_ACTION];
    launch_event(l, l->o.prefill_node, replay.start_ns, seen);
    tec_loop_note(l, tec_loop_node_name(l, l->o.prefill_node), replay.start_ns, seen);
    if (action) {
        launch_event(l, l->o.action_node, seen, acted);
        tec_loop_note(l, tec_loop_node_name(l, l->o.action_node), seen, acted);
        tec_loop_tell(
            l, (struct tec_event){.kind = TEC_EVENT_RELEASE,
                                  .node = l->o.action_node,
                                  .request = -1,
                                  .t_ns = r->release_ns,
                                  .since_ns = input->captured_ns,
                                  .flag = r->deadline_ns >= 0 && r->release_ns > r->deadline_ns,
                                  .chunk = l->chunk});
    }
    tec_loop_measure_prefix(l, &replay, action);
}
