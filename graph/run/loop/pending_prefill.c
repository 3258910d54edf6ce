/* pending_prefill.c - prefills that are not in frames: requests wait until theirs has had its turn,
 * in slices that fill what hard work leaves over (slices.c). One at a time is begun and not done.
 *
 * Such a prefill is of the frame in which its requests were born. One with a trigger of its own is
 * of the observation that the trigger came with: it is held for all requests until the next one,
 * and runs when the first of them waits for it. */
#include "graph/run/loop/pending_prefill.h"
#include "graph/run/loop/decision.h"
#include "graph/run/loop/pictures.h"
#include "graph/run/loop/slices.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/texts.h"
#include "graph/run/recall/memory.h"

#include <string.h>

/* Has it keys, but not all of its slices? */
static bool begun(const struct tec_pending_prefill *a)
{
    return a->region >= 0 && a->done < a->chain->slices;
}

/* Are all of its keys there? */
static bool whole(const struct tec_pending_prefill *a)
{
    return a->region >= 0 && a->done == a->chain->slices;
}

/* --- births and ends ------------------------------------------------------------------------- */

/* The one that a request of the session whose turn it is joins: that which is held, or of chains
 * that hold none, that of its frame. */
static struct tec_pending_prefill *there(const struct tec_loop *l, const struct tec_chain *c)
{
    for (int i = 0; i < l->n_pending; i++) {
        struct tec_pending_prefill *a = &l->pending[i];
        bool its = c->o->holds ? a->held : a->waiting > 0 && a->frame == l->tick->frame;
        if (its && a->chain == c && a->session == l->tick->session)
            return a;
    }
    return NULL;
}

bool tec_pending_prefill_there(const struct tec_loop *l, int chain)
{
    const struct tec_chain *c = &l->chains[chain];
    return c->o->holds ? there(l, c) != NULL : l->input->chains[chain].prefix.n_text > 0;
}

static struct tec_pending_prefill *unused(struct tec_loop *l)
{
    for (int i = 0; i < l->n_pending; i++)
        if (l->pending[i].waiting == 0 && !l->pending[i].held)
            return &l->pending[i];
    return NULL;
}

static size_t picture_size(const struct tec_pending_prefill *a)
{
    return tec_model_picture_bytes(a->chain->plan->model);
}

/* The observation is gone when the prefill begins. One without pixels is simulated. */
static void keep_pictures(struct tec_pending_prefill *a, const struct tec_prefix_input *p)
{
    const struct tec_model *m = a->chain->plan->model;
    for (int i = 0; i < p->n_pictures; i++) {
        struct tec_picture_size size = tec_model_picture(m, i);
        size_t values = (size_t)size.h * (size_t)size.w * 3;
        if (p->picture[i])
            memcpy(a->pixels + (size_t)i * picture_size(a), p->picture[i],
                   values * (m->vision.floats ? sizeof(float) : 1));
    }
}

struct tec_chain_input tec_pending_prefill_input(const struct tec_pending_prefill *a)
{
    struct tec_chain_input in = {
        .prefix = {.n_pictures = a->n_pictures, .n_text = a->n, .ids = a->ids},
        .memory = a->memory};
    for (int i = 0; i < a->n_pictures; i++)
        in.prefix.picture[i] = a->pixels + (size_t)i * picture_size(a);
    return in;
}

/* Segments that an observation brought are held until the prefill begins: the room that they are in
 * changes places with one of the chain's, which the observation's owner drops in its own time. */
static void keep_segments(struct tec_loop *l, struct tec_pending_prefill *a)
{
    struct tec_memory_prompt *rooms = a->chain->o->rooms;
    struct tec_memory_prompt *given = tec_chain_input(l, a->chain, l->input)->memory;
    if (!rooms || !given)
        return;
    a->memory = &rooms[a - l->pending];
    struct tec_memory_prompt other = *a->memory;
    *a->memory = *given;
    *given = other;
}

/* Of this observation. There are as many as requests can wait for, and as can be held. */
static struct tec_pending_prefill *ask(struct tec_loop *l, struct tec_chain *c)
{
    const struct tec_chain_input *in = tec_chain_input(l, c, l->input);
    const struct tec_prefix_input *p = &in->prefix;
    struct tec_pending_prefill *a = unused(l);
    int *ids = a->ids;
    uint8_t *pixels = a->pixels;
    *a = (struct tec_pending_prefill){.chain = c,
                                      .session = l->tick->session,
                                      .frame = l->tick->frame,
                                      .region = -1,
                                      .n = p->n_text,
                                      .ids = ids,
                                      .n_pictures = p->n_pictures,
                                      .seen = tec_pictures_of(l, p),
                                      .pixels = pixels};
    memcpy(ids, p->ids, (size_t)p->n_text * sizeof *ids);
    memcpy(a->reads, in->reads, sizeof a->reads);
    keep_pictures(a, p);
    keep_segments(l, a);
    return a;
}

static int join(struct tec_loop *l, struct tec_chain *c)
{
    struct tec_pending_prefill *a = there(l, c);
    a = a ? a : ask(l, c);
    if (!a->told)
        tec_loop_tell_reads(l, c, a->reads);
    a->told = true;
    a->waiting++;
    return (int)(a - l->pending);
}

void tec_pending_prefill_join(struct tec_loop *l, struct tec_request *r)
{
    const struct tec_decoder *d = &l->o.decoders[r->decoder];
    struct tec_chain *c = &l->chains[d->chain];
    r->pending = c->in_frames ? -1 : join(l, c);
    r->draft.pending = d->draft ? join(l, &l->chains[d->draft - 1]) : -1;
}

static void drop(struct tec_loop *l, struct tec_pending_prefill *a, int64_t at_ns)
{
    const struct tec_executor *e = a->chain->executor;
    if (a->region < 0)
        return;
    if (begun(a) && e->give_up)
        e->give_up(e->memory);
    tec_kv_pool_drop(&a->chain->plan->prefixes, a->region);
    a->region = -1;
    a->done = 0;
    tec_loop_tell_prefix(l, "free", a->chain, a->rows, at_ns);
}

/* Nobody waits any more for what is begun: the next one begins with its first slice. So does one
 * that is held and is not whole. */
void tec_pending_prefill_had(struct tec_loop *l, int *pending, int64_t at_ns)
{
    if (*pending < 0)
        return;
    struct tec_pending_prefill *a = &l->pending[*pending];
    *pending = -1;
    if (--a->waiting == 0 && !(a->held && whole(a)))
        drop(l, a, at_ns);
}

void tec_pending_prefill_leave(struct tec_loop *l, struct tec_request *r, int64_t at_ns)
{
    tec_pending_prefill_had(l, &r->pending, at_ns);
    tec_pending_prefill_had(l, &r->draft.pending, at_ns);
}

/* --- those that are held --------------------------------------------------------------------- */

static void release(struct tec_loop *l, struct tec_pending_prefill *a)
{
    a->held = false;
    if (a->waiting == 0)
        drop(l, a, tec_loop_now(l));
}

void tec_pending_prefills_drop(struct tec_loop *l)
{
    for (int i = 0; i < l->n_pending; i++)
        if (l->pending[i].held && l->pending[i].session == l->tick->session)
            release(l, &l->pending[i]);
}

/* Does this observation begin another one? */
static bool is_over(const struct tec_loop *l, const struct tec_pending_prefill *a)
{
    const struct tec_chain *c = a->chain;
    return c->o->on_change ? tec_loop_key(l, c) != a->key
                           : l->tick->counted / c->every != a->counted / c->every;
}

void tec_pending_prefills_begin(struct tec_loop *l)
{
    for (int m = 0; m < l->o.n_chains; m++) {
        struct tec_chain *c = &l->chains[m];
        struct tec_pending_prefill *a = c->o->holds ? there(l, c) : NULL;
        bool asked = l->input->chains[m].prefix.n_text > 0;
        if (a && (a->episode != l->input->episode || (is_over(l, a) && asked))) {
            release(l, a);
            a = NULL;
        }
        if (a || !c->o->holds || !asked)
            continue;
        a = ask(l, c);
        a->held = true;
        a->episode = l->input->episode;
        a->counted = l->tick->counted;
        a->key = tec_loop_key(l, c);
    }
}

/* --- what requests wait for ------------------------------------------------------------------ */

/* One of the draft's that is begun comes first: until it is done no other may begin, so a plan has
 * to see it. */
const struct tec_pending_prefill *tec_pending_prefill_of(const struct tec_loop *l,
                                                         const struct tec_request *r)
{
    const struct tec_pending_prefill *draft =
        r->draft.pending < 0 ? NULL : &l->pending[r->draft.pending];
    const struct tec_pending_prefill *own = r->pending < 0 ? NULL : &l->pending[r->pending];
    bool first = draft && (begun(draft) || !own || whole(own));
    return first ? draft : own;
}

int tec_pending_prefill_left(const struct tec_loop *l, const struct tec_request *r)
{
    const struct tec_pending_prefill *a = tec_pending_prefill_of(l, r);
    return a ? a->chain->slices - a->done : 0;
}

bool tec_pending_prefill_is_of(const struct tec_loop *l, const struct tec_request *r,
                               const struct tec_pending_prefill *a)
{
    int at = (int)(a - l->pending);
    return !r->ended && (r->pending == at || r->draft.pending == at);
}

/* --- whose turn it is ------------------------------------------------------------------------ */

/* The row of its first request in the order of launches. */
int tec_pending_prefill_row(const struct tec_loop *l, const struct tec_pending_prefill *a)
{
    int first = -1;
    for (int i = 0; i < l->n_live; i++)
        if (tec_pending_prefill_is_of(l, &l->requests[i], a) &&
            (first < 0 || tec_loop_before(l, i, first)))
            first = i;
    return first;
}

/* Order: what is whole already, then a prefill in progress, then by the priority of the requests
 * waiting for it. */
static bool sooner(const struct tec_loop *l, const struct tec_pending_prefill *a,
                   const struct tec_pending_prefill *b)
{
    if (whole(a) != whole(b) || begun(a) != begun(b))
        return whole(a) || (begun(a) && !whole(b));
    int x = tec_pending_prefill_row(l, a), y = tec_pending_prefill_row(l, b);
    return tec_loop_before(l, x, y) || (!tec_loop_before(l, y, x) && x < y);
}

/* Does a hard text wait for it? Then it is whole in the frame of that text, and no turn of it is
 * planned (tec_slices_first). */
static bool comes_first(const struct tec_loop *l, const struct tec_pending_prefill *a)
{
    for (int i = 0; i < l->n_live; i++)
        if (l->requests[i].draft.pending == (int)(a - l->pending) &&
            l->o.decoders[l->requests[i].decoder].awaited)
            return true;
    return false;
}

static struct tec_pending_prefill *next_of(struct tec_loop *l, const bool *seen)
{
    struct tec_pending_prefill *best = NULL;
    for (int i = 0; i < l->n_pending; i++)
        if (l->pending[i].waiting > 0 && !seen[i] && !comes_first(l, &l->pending[i]) &&
            tec_pending_prefill_row(l, &l->pending[i]) >= 0 &&
            (!best || sooner(l, &l->pending[i], best)))
            best = &l->pending[i];
    return best;
}

void tec_pending_prefill_plan(struct tec_loop *l)
{
    bool seen[TEC_MAX_PENDING] = {false};
    int left[TEC_MAX_CHAINS];
    struct tec_pending_prefill *a;
    for (int m = 0; m < l->o.n_chains; m++) {
        int node = l->chains[m].prefill_node;
        left[m] = node < 0 || tec_loop_leaves_out(l, node) ? 0 : l->decision.nodes[node].slices;
    }
    l->n_turns = l->n_planned = 0;
    for (int i = 0; i < l->n_pending; i++)
        l->pending[i].now = l->pending[i].planned = 0;
    while ((a = next_of(l, seen))) {
        int more = a->chain->slices - a->done, *rest = &left[tec_chain_index(l, a->chain)];
        seen[a - l->pending] = true;
        a->now = *rest < more ? *rest : more;
        a->planned = a->now > 0;
        *rest -= a->now;
        if (a->now > 0 || more == 0)
            l->turns[l->n_turns++] = (int)(a - l->pending);
        l->n_planned = l->n_turns;
        if (a->now < more && (a->region >= 0 || a->now > 0))
            return;
    }
}

bool tec_pending_prefill_ready(const struct tec_loop *l, const struct tec_request *r)
{
    const int both[] = {r->pending, r->draft.pending};
    bool ready = true;
    for (int i = 0; i < 2; i++) {
        const struct tec_pending_prefill *a = both[i] < 0 ? NULL : &l->pending[both[i]];
        ready &= !a || a->done + a->now == a->chain->slices;
    }
    return ready;
}

const struct tec_memory_prompt *tec_pending_prefill_memory(const struct tec_loop *l,
                                                           const struct tec_chain *c, int session)
{
    const struct tec_pending_prefill *next = NULL;
    for (int i = 0; i < l->n_pending; i++) {
        const struct tec_pending_prefill *a = &l->pending[i];
        if (a->waiting > 0 && a->chain == c && a->region < 0 && a->memory &&
            (session < 0 || a->session == session) && (!next || a->frame < next->frame))
            next = a;
    }
    return next ? next->memory : NULL;
}
