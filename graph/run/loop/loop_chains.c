/* loop_chains.c - the chains of a loop: plans, costs, request slots and views of each. */
#include "graph/run/loop/loop_chains.h"
#include "graph/run/loop/kept_chunks.h"
#include "graph/run/loop/loop.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/state_pending.h"
#include "graph/run/loop/text_keys.h"

#include <string.h>

static int view_of(const struct tec_loop *l, const char *name, int otherwise)
{
    for (int i = 0; name && i < l->o.topology->n_kv; i++)
        if (strcmp(l->o.topology->kv[i], name) == 0)
            return i;
    return otherwise;
}

/* Its first decode node. */
static int language_of(const struct tec_loop *l, int chain)
{
    for (int i = 0; i < l->o.n_decoders; i++)
        if (l->o.decoders[i].chain == chain && !l->o.decoders[i].tree)
            return l->o.decoders[i].node;
    return -1;
}

/* Does action node a of a chain run before b? What goes with the prefill does, then the earlier
 * deadline, equals in their order. */
static bool acts_before(const struct tec_loop *l, const struct tec_chain *c, int a, int b)
{
    const struct tec_action *x = &l->o.actions[a], *y = &l->o.actions[b];
    int first = c->plan->spec.frame_action;
    int64_t due = x->deadline_ns ? x->deadline_ns : INT64_MAX;
    int64_t other = y->deadline_ns ? y->deadline_ns : INT64_MAX;
    if (x->at == first || y->at == first)
        return x->at == first;
    return due != other ? due < other : a < b;
}

static void order_actions(const struct tec_loop *l, int chain, struct tec_chain *c)
{
    for (int i = 0; i < l->o.n_actions; i++) {
        if (l->o.actions[i].chain != chain)
            continue;
        c->action = c->n_actions ? c->action : i;
        int at = c->n_actions++;
        for (; at > 0 && acts_before(l, c, i, c->acts[at - 1]); at--)
            c->acts[at] = c->acts[at - 1];
        c->acts[at] = i;
    }
}

static bool take_rings(struct tec_loop *l)
{
    int n = l->o.topology->n_rings > 1 ? l->o.topology->n_rings : 1;
    bool any = false;
    for (int m = 0; m < l->o.n_chains; m++)
        any |= l->o.chains[m].ring != NULL;
    if (any)
        l->rings = TEC_NEW(&l->arena, (size_t)(n * l->sessions), struct tec_ring_state);
    return !any || l->rings;
}

/* Its place among the rings is the topology's. */
static void add_ring(struct tec_loop *l, const struct tec_loop_chain *o, struct tec_chain *c)
{
    int at = 0;
    while (at < l->o.topology->n_rings - 1 && strcmp(l->o.topology->rings[at].name, o->ring) != 0)
        at++;
    c->ring = tec_ring_first(l, at);
    for (int s = 0; s < l->sessions; s++)
        c->ring[s] = (struct tec_ring_state){.chain = c,
                                             .name = o->ring,
                                             .packed = o->packed ? o->packed : "packed",
                                             .alone = o->alone ? o->alone : "decode",
                                             .flushes = o->flushes,
                                             .first = (o->ring_at + s) * o->plan->spec.stages};
    l->n_rings = at >= l->n_rings ? at + 1 : l->n_rings;
}

/* The views of its decoders' texts: without a name of their own, the chain's. */
static void find_texts(struct tec_loop *l, int chain)
{
    for (int d = 0; d < l->o.n_decoders; d++)
        if (l->o.decoders[d].chain == chain)
            l->texts_kv[d] = view_of(l, l->o.decoders[d].kv, l->chains[chain].kv_requests);
}

/* Which of its texts frames make: those that hard nodes wait for, those that come behind. */
static void find_hard_texts(struct tec_loop *l, int chain)
{
    struct tec_chain *c = &l->chains[chain];
    for (int i = 0; i < l->o.n_decoders; i++) {
        const struct tec_decoder *d = &l->o.decoders[i];
        int64_t due = d->deadline_us * 1000;
        if (d->chain != chain || !d->awaited)
            continue;
        c->says |= !d->behind;
        if (d->behind && (!c->behind_ns || due < c->behind_ns))
            c->behind_ns = due;
    }
}

/* A loop of one chain need not name its views. */
static void fill_chain(struct tec_loop *l, int chain)
{
    struct tec_loop_chain *o = &l->o.chains[chain];
    struct tec_chain *c = &l->chains[chain];
    *c = (struct tec_chain){.o = o,
                            .host = l->chains,
                            .looks = l->chains,
                            .in_frames = o->in_frames,
                            .plan = o->plan,
                            .executor = &o->executor,
                            .first_request_slot = l->request_slots,
                            .slices = 1,
                            .kv_frame = view_of(l, o->kv_frame, 0),
                            .kv_requests = view_of(l, o->kv_requests, l->o.n_chains > 1 ? -1 : 1),
                            .prefill_node = o->prefill_node,
                            .action = -1,
                            .every = o->every > 1 ? o->every : 1,
                            .language = language_of(l, chain),
                            .prefix = {.region = -1}};
    while (c->host->plan != c->plan)
        c->host++;
    while (c->looks->plan->model != c->plan->model)
        c->looks++;
    order_actions(l, chain, c);
    find_texts(l, chain);
    find_hard_texts(l, chain);
    c->keeps = o->in_frames && (c->every > 1 || o->on_change);
    c->due_ns = o->due_ns ? o->due_ns : INT64_MAX;
    for (int i = 0; i < c->n_actions; i++) {
        const struct tec_action *a = &l->o.actions[c->acts[i]];
        c->keeps |= a->prev;
        if (a->deadline_ns > 0 && a->deadline_ns < c->due_ns)
            c->due_ns = a->deadline_ns;
    }
    if (!c->in_frames)
        c->slices = tec_part_slices(tec_plan_part(c->plan, TEC_PART_PREFIX, 0));
    if (o->ring)
        add_ring(l, o, c);
}

static bool runs_before(const struct tec_chain *a, const struct tec_chain *b)
{
    return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->o->depth < b->o->depth);
}

/* Hard chains run in the order of their deadlines; of equal ones what another waits for comes
 * first, then the first. */
static void order_hard(struct tec_loop *l)
{
    for (int m = 0; m < l->o.n_chains; m++) {
        if (!l->chains[m].in_frames)
            continue;
        int at = l->n_hard++;
        for (; at > 0 && runs_before(&l->chains[m], &l->chains[l->hard[at - 1]]); at--)
            l->hard[at] = l->hard[at - 1];
        l->hard[at] = m;
    }
}

static enum tec_status take_chain(struct tec_loop *l, struct tec_chain *c, struct tec_error *err)
{
    const struct tec_flow *f = &c->plan->model->flow;
    size_t chunk = (size_t)f->horizon * (size_t)f->dim + (size_t)c->plan->spec.stages;
    c->costs = c->host == c ? TEC_NEW(&l->arena, 1, struct tec_costs) : c->host->costs;
    c->chunk = c->in_frames ? TEC_NEW(&l->arena, chunk + 1, float) : NULL;
    c->prefix.prompt =
        c->in_frames ? TEC_NEW(&l->arena, (size_t)c->plan->spec.text_tokens + 1, int) : NULL;
    if (c->keeps)
        c->prefix.state = TEC_NEW(&l->arena, (size_t)tec_model_state(c->plan->model) + 1, float);
    if (c->o->hears)
        c->late = TEC_NEW(&l->arena, (size_t)l->sessions, struct tec_late_input);
    if (!c->costs || (c->in_frames && (!c->chunk || !c->prefix.prompt)) ||
        (c->keeps && !c->prefix.state) || (c->o->hears && !c->late))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a chain");
    if (c->host != c)
        return TEC_OK;
    TEC_TRY(tec_costs_init(c->costs, &c->plan->spec, &l->arena, err));
    c->costs->packed_name = c->ring ? c->ring->packed : NULL;
    c->costs->alone_name = c->ring ? c->ring->alone : NULL;
    return TEC_OK;
}

static enum tec_status make_pending(struct tec_loop *l, struct tec_error *err)
{
    size_t most = 1, pixels = 0;
    int n = l->request_slots;
    for (int m = 0; m < l->o.n_chains; m++) {
        n += l->o.chains[m].proposes ? l->chains[m].plan->spec.request_slots : 0;
        n += l->o.chains[m].holds ? l->sessions : 0;
        if (l->chains[m].in_frames)
            continue;
        const struct tec_plan *plan = l->chains[m].plan;
        size_t all = (size_t)plan->spec.pictures * tec_model_picture_bytes(plan->model);
        most = (size_t)plan->spec.text_tokens > most ? (size_t)plan->spec.text_tokens : most;
        pixels = all > pixels ? all : pixels;
    }
    if (n > TEC_MAX_PENDING)
        return tec_fail(err, TEC_INVALID, "%d prefills that requests wait for; the most is %d", n,
                        TEC_MAX_PENDING);
    l->n_pending = n;
    l->pending = TEC_NEW(&l->arena, (size_t)n + 1, struct tec_pending_prefill);
    for (int i = 0; l->pending && i < n; i++) {
        struct tec_pending_prefill *a = &l->pending[i];
        a->ids = TEC_NEW(&l->arena, most, int);
        a->pixels = pixels ? tec_arena_push(&l->arena, pixels, 1, 64) : NULL;
        if (!a->ids || (pixels && !a->pixels))
            l->pending = NULL;
    }
    return l->pending ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for prompts");
}

enum tec_status tec_chains_init(struct tec_loop *l, struct tec_error *err)
{
    bool waits = false;
    l->chains = TEC_NEW(&l->arena, (size_t)l->o.n_chains, struct tec_chain);
    l->sessions = l->o.chains->plan->spec.sessions > 1 ? l->o.chains->plan->spec.sessions : 1;
    if (!l->chains || !take_rings(l))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for chains");
    for (int m = 0; m < l->o.n_chains; m++) {
        fill_chain(l, m);
        const struct tec_plan_spec *spec = &l->chains[m].plan->spec;
        l->request_slots += l->o.chains[m].proposes ? 0 : spec->request_slots;
        l->max_k = spec->max_k > l->max_k ? spec->max_k : l->max_k;
        l->new_tokens = spec->new_tokens > l->new_tokens ? spec->new_tokens : l->new_tokens;
        l->prompt_tokens =
            spec->prompt_tokens > l->prompt_tokens ? spec->prompt_tokens : l->prompt_tokens;
        if (l->request_slots > TEC_MAX_ROWS)
            return tec_fail(err, TEC_INVALID, "%d request slots; this release handles %d",
                            l->request_slots, TEC_MAX_ROWS);
        TEC_TRY(take_chain(l, &l->chains[m], err));
        waits |= !l->chains[m].in_frames;
    }
    order_hard(l);
    TEC_TRY(tec_own_frames_create(l, err));
    TEC_TRY(tec_loop_text_keys_create(l, err));
    TEC_TRY(tec_kept_chunks_create(l, err));
    return waits ? make_pending(l, err) : TEC_OK;
}

void tec_loop_prior(struct tec_loop *l, const struct tec_cost_table *table)
{
    for (int m = 0; m < l->o.n_chains; m++)
        if (l->chains[m].host == &l->chains[m])
            tec_costs_prior(l->chains[m].costs, table, l->o.topology, m);
}

/* --- what later frames read ------------------------------------------------------------------ */

static bool stands_on(const struct tec_chain_prefix *p, int64_t frame)
{
    return p->region >= 0 && p->frame == frame;
}

static bool prefix_of(const struct tec_loop *l, int chain, int64_t frame)
{
    bool any = stands_on(&l->chains[chain].prefix, frame);
    for (int i = 0; i < l->sessions && l->own_prefixes; i++)
        any |= i != l->whose && stands_on(&l->own_prefixes[i].of[chain], frame);
    return any;
}

bool tec_loop_acts_on(const struct tec_loop *l, int64_t frame)
{
    bool any = false;
    for (int m = 0; m < l->o.n_chains; m++)
        any |= l->chains[m].keeps && prefix_of(l, m, frame);
    for (int i = 0; i < l->o.n_decoders * l->sessions && l->text_keys; i++)
        any |= l->text_keys[i].held && l->text_keys[i].seen == frame;
    for (int i = 0; i < l->n_live && l->text_keys; i++)
        any |= l->requests[i].stored && l->requests[i].seen == frame;
    for (int i = 0; i < l->o.n_actions * TEC_MAX_TICKING && l->kept; i++)
        any |= l->kept[i].left && l->kept[i].seen == frame;
    return any;
}

/* --- views ----------------------------------------------------------------------------------- */

static void clear_texts(struct tec_kv_view *v)
{
    v->used = v->pinned = v->bytes = v->oldest = 0;
}

/* A request's tokens, of so many bytes each, and its age in frames. */
static void add_text(struct tec_kv_view *v, int tokens, int64_t bytes, int64_t age)
{
    v->used += tokens;
    v->pinned = v->used;
    v->bytes += tokens * bytes;
    v->oldest = age > v->oldest ? age : v->oldest;
}

static void view_chain(struct tec_loop *l, int chain)
{
    const struct tec_chain *s = &l->chains[chain];
    const struct tec_kv_pool *prefixes = &s->plan->prefixes;
    struct tec_kv_view *frame = &l->kv[s->kv_frame];
    int64_t oldest = 0, stored = 0, token = tec_kv_token_bytes(&s->plan->space.shape);
    if (s->kv_requests >= 0)
        clear_texts(&l->kv[s->kv_requests]);
    for (int d = 0; d < l->o.n_decoders; d++)
        if (l->o.decoders[d].chain == chain && l->texts_kv[d] >= 0)
            clear_texts(&l->kv[l->texts_kv[d]]);
    for (int i = 0; i < l->n_live; i++) {
        const struct tec_request *r = &l->requests[i];
        int64_t age = l->tick->frame - r->born_frame;
        if (tec_chain_at(l, r) != chain)
            continue;
        oldest = age > oldest ? age : oldest;
        stored += r->stored;
        if (l->texts_kv[r->decoder] >= 0)
            add_text(&l->kv[l->texts_kv[r->decoder]], r->prompt_tokens + r->made, token, age);
    }
    frame->used = (int64_t)prefixes->in_use * prefixes->tokens;
    frame->pinned = (stored < prefixes->in_use ? stored : prefixes->in_use) * prefixes->tokens;
    frame->oldest = oldest;
    frame->bytes = frame->used * token;
}

void tec_chains_view(struct tec_loop *l)
{
    for (int m = 0; m < l->o.n_chains; m++)
        if (!l->chains[m].ring || l->chains[m].plan->spec.request_slots)
            view_chain(l, m);
}
