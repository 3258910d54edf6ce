/* acting.c - which action nodes run in a frame, and how their chunks leave. */
#include "graph/run/loop/acting.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/text_keys.h"

/* Has the session whose turn it is a text of a decoder that has not ended? */
static bool says(const struct tec_loop *l, int decoder)
{
    for (int i = 0; i < l->n_live; i++)
        if (l->requests[i].decoder == decoder && !l->requests[i].ended &&
            l->requests[i].session == l->tick->session)
            return true;
    return false;
}

/* Are there keys for it, or will there be when the texts that it waits for are made? */
static bool has_keys(const struct tec_loop *l, int action)
{
    const struct tec_action *a = &l->o.actions[action];
    int first = a->waits_for - 1;
    bool said = first >= 0 && (a->texts >> first & 1U) && says(l, first);
    return !a->texts || a->or_prefix || said || tec_loop_text_keys_of(l, action);
}

bool tec_loop_runs_late(const struct tec_loop *l, const struct tec_chain *c, int action)
{
    return !l->o.actions[action].prev && !tec_loop_in_frame(l, c, action) &&
           tec_loop_acts(l, action) && has_keys(l, action);
}

int tec_loop_actions_due(const struct tec_loop *l, const struct tec_chain *c)
{
    int n = tec_loop_frame_acts(l, c);
    for (int i = 0; i < c->n_actions; i++)
        n += tec_loop_runs_early(l, c, c->acts[i]) || tec_loop_runs_late(l, c, c->acts[i]) ||
             tec_loop_goes_on(l, c->acts[i]);
    return n;
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

void tec_loop_leave_actions_out(struct tec_loop *l)
{
    for (int i = 0; i < l->o.n_actions; i++) {
        struct tec_action_record *a = &l->record.actions[i];
        int node = l->o.actions[i].node;
        int64_t now = tec_loop_now(l);
        if (tec_loop_decided(l, i))
            continue;
        l->record.to_come = l->actions_due + tec_rings_to_come(l, NULL);
        a->left_out = true;
        tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_LEFT_OUT,
                                            .node = node,
                                            .request = -1,
                                            .t_ns = now,
                                            .flag = a->deadline_ns >= 0 && now > a->deadline_ns,
                                            .what = l->decision.nodes[node].reason});
        if (l->o.released)
            l->o.released(l->o.user, i, NULL, &l->record);
    }
}
