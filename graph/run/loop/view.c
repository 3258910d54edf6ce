/* view.c - what policies see of a frame: requests, caches, costs and the slack. */
#include "graph/run/loop/view.h"
#include "graph/run/loop/expected.h"
#include "graph/run/loop/loop_chains.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/pending_prefill.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/recall/memory.h"

struct tec_request_view tec_loop_view_of(const struct tec_loop *l, const struct tec_request *r)
{
    const struct tec_chain *s = &l->chains[tec_chain_at(l, r)];
    const struct tec_pending_prefill *waits = tec_pending_prefill_of(l, r);
    int64_t now = tec_loop_now(l), age = l->tick->frame - r->born_frame;
    bool limited = r->deadline_ns != INT64_MAX;
    return (struct tec_request_view){
        .id = r->id,
        .node = l->o.decoders[r->decoder].node,
        .left = r->max - r->made,
        .done = r->made,
        .max = r->max,
        .age_frames = (int)age,
        .born_us = r->born_ns / 1000,
        .deadline_us = limited ? r->deadline_ns / 1000 : INT64_MAX,
        .slack_us = limited ? (r->deadline_ns - now) / 1000 : INT64_MAX,
        .prio = r->prio,
        .kv_bytes = (int64_t)(r->row.prefix + r->prompt_tokens + r->made) *
                    tec_kv_token_bytes(&s->plan->space.shape),
        .shared = r->shared,
        .fresh = !r->stored && (s->in_frames || age == 0),
        .drafted = r->draft.drafted,
        .kept = r->draft.kept,
        .prefill = waits ? waits->chain->prefill_node : s->prefill_node,
        .slices = tec_pending_prefill_left(l, r)};
}

/* Fills the view of the caches. `pinned` counts tokens of the frame's caches that live requests
 * still read; the age is that of the oldest of these requests. */
static void view_caches(struct tec_loop *l)
{
    tec_chains_view(l);
    for (int i = 0; i < l->n_rings; i++) {
        const struct tec_ring_state *ring = tec_ring_first(l, i);
        struct tec_kv_view *kv = &l->kv[ring->chain->kv_frame];
        kv->used = kv->oldest = 0;
        for (int s = 0; s < l->sessions; s++) {
            int64_t age = ring[s].n ? ring[s].turn - ring[s].items[0].turn : 0;
            kv->used += tec_ring_used(&ring[s]);
            kv->oldest = age > kv->oldest ? age : kv->oldest;
        }
        kv->pinned = kv->used;
        kv->bytes = kv->used * tec_kv_token_bytes(&ring->chain->plan->space.shape);
    }
}

static void show(struct tec_loop *l, struct tec_chain *c, const struct tec_memory_prompt *p)
{
    if (!p)
        return;
    c->shown[c->n_shown] = p;
    c->first_segment[c->n_shown++] = l->view.n_seg;
    for (int u = 0; u < p->n_segments && l->view.n_seg < TEC_MAX_SEGMENTS; u++)
        l->segments[l->view.n_seg++] = p->views[u];
}

/* Of a chain in frames that of a session of this frame, else of any one's. */
static const struct tec_memory_prompt *prompt_of(const struct tec_loop *l, int chain, int session)
{
    if (!l->chains[chain].in_frames)
        return tec_pending_prefill_memory(l, &l->chains[chain], l->sessions > 1 ? session : -1);
    const struct tec_frame_input *input = l->own[session].input;
    return input ? input->chains[chain].memory : NULL;
}

/* Segments of the prompts that are computed in this frame, and of those that are begun next where
 * requests wait, one chain behind the other, and of a chain one session's behind the other's. */
static void view_segments(struct tec_loop *l)
{
    l->view.n_seg = 0;
    l->view.seg = l->segments;
    for (int i = 0; i < l->o.n_chains; i++) {
        struct tec_chain *c = &l->chains[i];
        c->n_shown = 0;
        for (int s = 0; s < (c->in_frames ? l->n_own : l->sessions); s++)
            show(l, c, prompt_of(l, i, s));
    }
}

void tec_loop_view(struct tec_loop *l)
{
    for (int i = 0; i < l->n_live; i++)
        l->view_rows[i] = tec_loop_view_of(l, &l->requests[i]);
    view_caches(l);
    l->view.n_req = l->n_live;
    l->view.next_id = l->next_id;
    l->view.n_audits = l->view.n_agreed = 0;
    for (int i = 0; i < l->o.n_chains; i++)
        if (l->chains[i].executor->report)
            l->chains[i].executor->report(l->chains[i].executor->memory, &l->view);
    view_segments(l);
    l->view.index = l->tick->frame;
    l->view.idle = !tec_loop_observed(l);
    const struct tec_text_read *read = l->input ? l->input->chains[0].reads : NULL;
    l->view.text_request = read && read->stream ? read->request : -1;
    l->view.text_age_us =
        l->view.text_request < 0 ? 0 : (l->record.start_ns - read->born_ns) / 1000;
    l->view.now_us = tec_loop_now(l) / 1000;
    l->view.deadline_us = l->tick->deadline_ns >= 0 ? l->tick->deadline_ns / 1000 : INT64_MAX;
    l->view.budget_us =
        l->tick->deadline_ns >= 0 ? l->view.deadline_us - l->view.now_us : INT64_MAX;
    l->view.last = l->result;
    for (int i = 0; i < l->view.n_inputs; i++)
        l->late_us[i] = l->tick->late_ns / 1000;
}

/* When the device is wanted next; INT64_MAX in a loop of one session whose frames follow each
 * other. */
static int64_t wanted_next(const struct tec_loop *l, int64_t now)
{
    if (l->o.wanted)
        return l->o.wanted(l->o.wanted_self, now);
    int64_t next = l->tick->next_ns, period = l->o.period_ns;
    if (period > 0 && next <= now)
        next += ((now - next) / period + 1) * period;
    return next;
}

/* Sessions of the frame that have an observation. */
static int observed(const struct tec_loop *l)
{
    int n = 0;
    for (int i = 0; i < l->n_own; i++)
        n += l->own[i].input != NULL;
    return n;
}

/* What the longest hard texts of a chain take, of n sessions, with the step that reads a last
 * token. */
static double texts_cost(const struct tec_loop *l, const struct tec_chain *c, int n, double q)
{
    double us = 0.0;
    const struct tec_topology *t = l->o.topology;
    for (int d = 0; d < l->o.n_decoders; d++) {
        const struct tec_decoder *o = &l->o.decoders[d];
        int launches = o->tree ? n : 1, rows = o->tree ? 1 : n;
        if (o->awaited && &l->chains[o->chain] == c)
            us += launches * t->nodes[o->node].steps *
                  tec_loop_cost_of(l, t->nodes[o->node].name, rows, q);
    }
    return us;
}

/* What the hard nodes of a chain take in a frame with n observations. */
static double hard_cost(const struct tec_loop *l, const struct tec_chain *c, int n, double q)
{
    int together = l->n_own > 1 && c->costs->n_together > 1 ? n : 0;
    double us = texts_cost(l, c, n, q);
    if (c->prefill_node >= 0)
        us += tec_loop_launch_cost(l, c, TEC_COST_PREFILL, together, q);
    for (int i = 0; i < l->o.n_actions; i++)
        if (&l->chains[l->o.actions[i].chain] == c)
            us += tec_loop_cost_of(l, l->o.actions[i].name, together, q);
    return us;
}

/* Sessions of the frame whose rings do not stand still. */
static int moving(const struct tec_loop *l)
{
    int n = 0;
    for (int i = 0; i < l->n_own; i++)
        n += !l->own[i].tick->rests;
    return n;
}

static double slack_of(const void *self, double q)
{
    const struct tec_loop *l = self;
    int64_t now = tec_loop_now(l), next = wanted_next(l, now);
    double hard = 0.0;
    int n = observed(l); /* without any no hard node runs */
    for (int i = 0; i < l->o.n_chains && n > 0; i++)
        if (l->chains[i].in_frames && !l->chains[i].ring)
            hard += hard_cost(l, &l->chains[i], n, q);
    int depths[TEC_MAX_RINGS];
    for (int i = 0; i < l->n_rings; i++)
        depths[i] = tec_ring_depth(l, tec_ring_first(l, i));
    hard += tec_loop_rings_cost(l, depths, moving(l), q);
    if (next == INT64_MAX)
        next = l->record.start_ns + l->o.topology->period_us * 1000;
    double slack = (double)(next - now) / 1000.0 - hard;
    int64_t others = tec_loop_others_next(l, now);
    if (others != INT64_MAX && (double)(others - now) / 1000.0 < slack)
        slack = (double)(others - now) / 1000.0;
    return slack > 0.0 ? slack : 0.0;
}

static void set_caps(struct tec_loop *l, const struct tec_chain *s)
{
    const struct tec_plan *p = s->plan;
    l->kv[s->kv_frame].cap = p->spec.stages
                                 ? (int64_t)l->sessions * p->spec.stages * p->spec.ring_tokens
                                 : (int64_t)p->prefixes.n * p->prefixes.tokens;
    if (s->kv_requests >= 0)
        l->kv[s->kv_requests].cap =
            (int64_t)p->spec.request_slots * (p->spec.prompt_tokens + p->spec.new_tokens);
}

void tec_loop_prepare_view(struct tec_loop *l)
{
    const struct tec_plan *p = l->chains->plan;
    l->view.req = l->view_rows;
    l->view.slots = l->request_slots;
    for (int d = 0; d < l->o.n_decoders; d++) /* those of finished texts take no requests */
        l->view.slots -= l->o.decoders[d].keeps_keys ? l->sessions : 0;
    l->view.horizon = p->model->flow.horizon;
    l->view.period_us = l->o.topology->period_us;
    l->view.seed = l->o.topology->seed;
    l->view.costs = (struct tec_cost_source){tec_loop_cost_of, slack_of, l};
    l->view.n_inputs = l->o.topology->n_inputs;
    l->view.late_us = l->late_us;
    int most = 2 * l->o.n_chains;
    for (int d = 0; d < l->o.n_decoders; d++)
        most = l->texts_kv[d] >= most ? l->texts_kv[d] + 1 : most;
    l->view.n_kv = l->o.topology->n_kv < most ? l->o.topology->n_kv : most;
    l->view.kv = l->kv;
    if (l->view.n_kv == 1) /* of requests that hold on to a prefix alone */
        l->kv[1].name = l->o.topology->kv[0];
    for (int i = 0; i < l->o.topology->n_kv && i < TEC_MAX_KV_VIEWS; i++)
        l->kv[i].name = l->o.topology->kv[i];
    for (int m = 0; m < l->o.n_chains; m++)
        set_caps(l, &l->chains[m]);
    for (int d = 0; d < l->o.n_decoders; d++) {
        const struct tec_decoder *o = &l->o.decoders[d];
        const struct tec_plan_spec *s = &l->chains[o->chain].plan->spec;
        if (o->kv && l->texts_kv[d] >= 0)
            l->kv[l->texts_kv[d]].cap =
                (int64_t)o->slots * l->sessions * (s->prompt_tokens + s->new_tokens);
    }
}
