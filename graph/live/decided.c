/* decided.c - keeps what a frame's planner and clock decided, and decides it again. */
#include "graph/live/decided.h"

#include "graph/run/loop/loop.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* --- keeping it ------------------------------------------------------------------------------- */

void tec_deciding_init(struct tec_deciding *d, int n_nodes)
{
    memset(d, 0, sizeof *d);
    d->n_nodes = n_nodes;
    d->ended = true;
}

/* Of several sessions that have a frame together the first one's event comes first. */
static void begin(struct tec_deciding *d, const struct tec_event *e)
{
    struct tec_decided *now = &d->now;
    if (!d->ended)
        return;
    d->ended = d->planned = false;
    now->whole = true;
    now->frame = e->tick->frame;
    now->session = e->tick->session;
    now->n_late = now->n_refused = now->n_evicted = now->decision.n_rows = 0;
    memset(d->ran, 0, sizeof d->ran);
    memset(d->slices, 0, sizeof d->slices);
}

static void keep_shed(struct tec_deciding *d, const struct tec_event *e)
{
    struct tec_decided *now = &d->now;
    /* What is given up behind the plan, the plan says. */
    bool late = !d->planned && strcmp(e->what, TEC_SHED_LATE) == 0;
    bool evicted = !d->planned && strcmp(e->what, TEC_SHED_EVICTED) == 0;
    now->whole &= (!late || now->n_late < TEC_DECIDED_GIVEN_UP) &&
                  (!evicted || now->n_evicted < TEC_DECIDED_GIVEN_UP);
    if (late && now->n_late < TEC_DECIDED_GIVEN_UP)
        now->late[now->n_late++] = (struct tec_decided_late){e->request, e->tick->session};
    if (evicted && now->n_evicted < TEC_DECIDED_GIVEN_UP)
        now->evicted[now->n_evicted++] = (struct tec_decided_eviction){e->request, -1};
}

/* The room was made for it. */
static void keep_arrival(struct tec_deciding *d, const struct tec_event *e)
{
    for (int i = d->now.n_evicted; i > 0 && d->now.evicted[i - 1].arrival < 0; i--)
        d->now.evicted[i - 1].arrival = e->request;
}

static void keep_refusal(struct tec_deciding *d, const struct tec_event *e)
{
    struct tec_decided *now = &d->now;
    if (now->n_refused == TEC_DECIDED_REFUSED) {
        now->whole = false;
        return;
    }
    struct tec_decided_refusal *r = &now->refused[now->n_refused++];
    r->request = e->request;
    snprintf(r->reason, sizeof r->reason, "%s", e->what ? e->what : "");
}

/* A segment whose keys and values were not there is computed anew, as one that is skipped. */
static void keep_segments(struct tec_decision *d, const struct tec_event *e)
{
    bool any = false;
    for (int i = 0; i < e->n_segments; i++)
        any |= e->segments[i].dirty;
    for (int i = d->n_seg; any && i < e->n_segments; i++)
        d->seg[i] = (struct tec_segment_decision){.score = 0.0};
    if (any && d->n_seg < e->n_segments)
        d->n_seg = e->n_segments;
    for (int i = 0; i < d->n_seg; i++) {
        double score = d->seg[i].score;
        d->seg[i].score = score > DBL_MAX ? DBL_MAX : score < -DBL_MAX ? -DBL_MAX : score;
        d->seg[i].skip |= i < e->n_segments && e->segments[i].dirty;
    }
}

static void keep_plan(struct tec_deciding *d, const struct tec_event *e)
{
    struct tec_decided *now = &d->now;
    tec_decision_copy(&now->decision, e->decision, d->n_nodes);
    now->decision.source = NULL;
    now->decision.n_notes = 0;
    for (int i = 0; i < now->decision.n_rows; i++)
        now->requests[i] = e->view[i].id;
    keep_segments(&now->decision, e);
    snprintf(now->policy, sizeof now->policy, "%s", e->what);
    d->planned = true;
}

/* Sequences of a ring are no requests; a prefill that a draft needs at once is no slice of the
 * plan. */
static void keep_launch(struct tec_deciding *d, const struct tec_event *e)
{
    if (e->slices > 0 && e->node >= 0 && e->flag)
        d->slices[e->node] += e->slices;
    for (int k = 0; !e->ring && e->requests && k < e->n; k++)
        for (int i = 0; i < d->now.decision.n_rows; i++)
            d->ran[i] |= d->now.requests[i] == e->requests[k];
}

/* Of a frame that was cut short the plan is what came to be of it. */
static void end(struct tec_deciding *d, const struct tec_event *e)
{
    struct tec_decision *plan = &d->now.decision;
    if (d->ended)
        return;
    d->ended = true;
    d->now.whole &= d->planned;
    for (int i = 0; e->record->cut && i < plan->n_rows; i++)
        plan->rows[i].k = d->ran[i] ? plan->rows[i].k : 0;
    for (int i = 0; e->record->cut && i < d->n_nodes; i++)
        plan->nodes[i].slices = d->slices[i];
}

void tec_deciding_hear(struct tec_deciding *d, const struct tec_event *e)
{
    static void (*const keeps[TEC_EVENTS])(struct tec_deciding * d, const struct tec_event *e) = {
        [TEC_EVENT_FRAME] = begin,         [TEC_EVENT_SHED] = keep_shed,
        [TEC_EVENT_ARRIVE] = keep_arrival, [TEC_EVENT_REFUSE] = keep_refusal,
        [TEC_EVENT_PLAN] = keep_plan,      [TEC_EVENT_START] = keep_launch,
        [TEC_EVENT_FRAME_END] = end};
    if (keeps[e->kind])
        keeps[e->kind](d, e);
}

/* --- deciding it again ------------------------------------------------------------------------ */

/* The policy hears everything: one with state is as warm in a frame that it has to decide as if it
 * had decided those before. Of a frame that is known its answers are not taken. */
static bool admit(void *self, const struct tec_frame_view *view, const struct tec_request_view *r,
                  char reason[32])
{
    const struct tec_following *f = self;
    const struct tec_planner *o = &f->otherwise;
    bool yes = !o->admit || o->admit(o->self, view, r, reason);
    for (int i = 0; f->decided && i < f->decided->n_refused; i++)
        if (f->decided->refused[i].request == r->id) {
            memcpy(reason, f->decided->refused[i].reason, TEC_DECIDED_REASON);
            return false;
        }
    return f->decided || yes;
}

static int evict(void *self, const struct tec_frame_view *view, int n)
{
    const struct tec_following *f = self;
    const struct tec_planner *o = &f->otherwise;
    int own = o->evict ? o->evict(o->self, view, n) : -1;
    if (!f->decided)
        return own;
    for (int i = 0; i < f->decided->n_evicted; i++)
        for (int k = 0; f->decided->evicted[i].arrival == view->next_id && k < view->n_req; k++)
            if (view->req[k].id == f->decided->evicted[i].request)
                return k;
    return -1;
}

static bool late(void *self, int session, int64_t request, bool is_late)
{
    const struct tec_following *f = self;
    const struct tec_planner *o = &f->otherwise;
    if (!f->decided)
        return o->late ? o->late(o->self, session, request, is_late) : is_late;
    for (int i = 0; i < f->decided->n_late; i++)
        if (f->decided->late[i].request == request && f->decided->late[i].session == session)
            return true;
    return false;
}

/* Do the same requests live as then? */
static bool alike(const struct tec_decided *d, const struct tec_decision *plan,
                  const struct tec_frame_view *view)
{
    bool same = d->decision.n_rows == plan->n_rows;
    for (int i = 0; same && i < plan->n_rows; i++)
        same = d->requests[i] == view->req[i].id;
    return same;
}

static enum tec_status plan(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *err)
{
    struct tec_following *f = self;
    const struct tec_planner *o = &f->otherwise;
    struct tec_error unheard;
    f->followed = f->decided && alike(f->decided, decision, view);
    if (!f->followed)
        return o->plan ? o->plan(o->self, view, decision, err) : TEC_OK;
    if (o->plan) {
        tec_decision_copy(&f->unheard, decision, f->n_nodes);
        enum tec_status status = o->plan(o->self, view, &f->unheard, &unheard);
        (void)status; /* as its plan */
    }
    tec_decision_copy(decision, &f->decided->decision, f->n_nodes);
    return TEC_OK;
}

static void observe(void *self, const struct tec_frame_view *view,
                    const struct tec_frame_result *result)
{
    const struct tec_following *f = self;
    if (f->otherwise.observe)
        f->otherwise.observe(f->otherwise.self, view, result);
}

static const char *decider(void *self)
{
    const struct tec_following *f = self;
    return f->followed ? f->decided->policy : tec_planner_name(&f->otherwise);
}

struct tec_planner tec_following_planner(struct tec_following *f)
{
    return (struct tec_planner){.name = "recorded",
                                .self = f,
                                .admit = admit,
                                .plan = plan,
                                .observe = observe,
                                .evict = evict,
                                .decider = decider,
                                .late = late};
}
