/* own_frames.c - the sessions that a frame runs together: whose turn it is.
 *
 * Frame thread. All that a frame does is written for one session: its input, its tick, its
 * prefixes, its record. Where several run together, each has its own, and the loop works on those
 * of the session whose turn it is. Launches, decisions and costs are of all of them and stay. */
#include "graph/run/loop/own_frames.h"

#include <string.h>

/* What of a record is a session's own; the row of the first action is always there. */
static void copy_own(const struct tec_loop *l, struct tec_frame_record *to,
                     const struct tec_frame_record *from)
{
    size_t actions = l->o.n_actions > 1 ? (size_t)l->o.n_actions : 1;
    to->frame = from->frame;
    to->tick_ns = from->tick_ns;
    to->session = from->session;
    to->place = from->place;
    memcpy(to->actions, from->actions, actions * sizeof *to->actions);
    to->overrun_us = from->overrun_us;
    to->missed = from->missed;
    to->cause = from->cause;
    to->filling = from->filling;
    to->to_come = from->to_come;
    to->n_reads = from->n_reads;
    memcpy(to->reads, from->reads, (size_t)from->n_reads * sizeof *to->reads);
}

void tec_loop_take_prefixes(struct tec_loop *l, int session)
{
    if (l->sessions < 2 || session == l->whose)
        return;
    for (int m = 0; m < l->o.n_chains; m++) {
        l->own_prefixes[l->whose].of[m] = l->chains[m].prefix;
        l->chains[m].prefix = l->own_prefixes[session].of[m];
    }
    l->whose = session;
}

void tec_loop_turn(struct tec_loop *l, int who)
{
    if (l->n_own < 2 || who == l->turn)
        return;
    struct tec_own_frame *from = &l->own[l->turn], *to = &l->own[who];
    copy_own(l, &from->record, &l->record);
    copy_own(l, &l->record, &to->record);
    from->actions_due = l->actions_due;
    l->actions_due = to->actions_due;
    l->input = to->input;
    l->tick = to->tick;
    l->turn = who;
    tec_loop_take_prefixes(l, l->tick->session);
}

int tec_loop_place(const struct tec_loop *l, const struct tec_request *r)
{
    int i = l->n_own - 1;
    while (i >= 0 && l->own[i].tick->session != r->session)
        i--;
    return i;
}

void tec_loop_turn_of(struct tec_loop *l, const struct tec_request *r)
{
    int who = tec_loop_place(l, r);
    if (who >= 0)
        tec_loop_turn(l, who);
}

bool tec_loop_observed(const struct tec_loop *l)
{
    bool any = false;
    for (int i = 0; i < l->n_own; i++)
        any |= l->own[i].input != NULL;
    return any;
}

/* The buffers of a prefix go with it. */
static bool take_prefix(struct tec_loop *l, const struct tec_chain *c, struct tec_chain_prefix *p)
{
    p->region = -1;
    p->prompt = TEC_NEW(&l->arena, (size_t)c->plan->spec.text_tokens + 1, int);
    if (c->keeps)
        p->state = TEC_NEW(&l->arena, (size_t)tec_model_state(c->plan->model) + 1, float);
    return p->prompt && (p->state || !c->keeps);
}

/* Every session but the first has prefixes of its own; that one's are the chains'. */
enum tec_status tec_own_frames_create(struct tec_loop *l, struct tec_error *err)
{
    l->n_own = 1;
    l->own = TEC_NEW(&l->arena, (size_t)l->sessions, struct tec_own_frame);
    if (l->sessions > 1)
        l->own_prefixes = TEC_NEW(&l->arena, (size_t)l->sessions, struct tec_own_prefixes);
    bool ok = l->own && (l->own_prefixes || l->sessions < 2);
    for (int i = 1; ok && i < l->sessions; i++)
        for (int m = 0; ok && m < l->o.n_chains; m++)
            ok = take_prefix(l, &l->chains[m], &l->own_prefixes[i].of[m]);
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %d sessions", l->sessions);
}
