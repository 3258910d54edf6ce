/* requests.c - language requests: born, stored, advanced, finished, and the text they leave. */
#include "graph/run/loop/requests.h"
#include "graph/run/launch/noise.h"
#include "graph/run/loop/drafts.h"
#include "graph/run/loop/pending_prefill.h"
#include "graph/run/loop/rank.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/text_keys.h"
#include "graph/run/loop/texts.h"
#include "graph/run/loop/view.h"
#include "kernels/philox.h"

#include <stdio.h>
#include <string.h>

static bool other_session(const struct tec_loop *l, const struct tec_request *r)
{
    return l->sessions > 1 && r->session != l->tick->session;
}

/* Do texts of two decoders take the same request slots? */
static bool share_slots(const struct tec_loop *l, int a, int b)
{
    const struct tec_decoder *x = &l->o.decoders[a], *y = &l->o.decoders[b];
    return x->chain == y->chain && x->first_slot == y->first_slot;
}

/* Request slots that other decoders with the same ones keep and do not use now. */
static int kept_by_others(const struct tec_loop *l, int decoder)
{
    int n = 0;
    for (int d = 0; d < l->o.n_decoders; d++) {
        const struct tec_decoder *other = &l->o.decoders[d];
        bool kept = other->keeps_slot && d != decoder;
        for (int i = 0; kept && i < l->n_live; i++)
            kept = l->requests[i].decoder != d || l->requests[i].ended ||
                   other_session(l, &l->requests[i]);
        n += kept && share_slots(l, d, decoder);
    }
    return n;
}

/* Each session has slots of its own, so none is refused because of another's. */
static int free_request_slot(const struct tec_loop *l, int decoder)
{
    const struct tec_decoder *d = &l->o.decoders[decoder];
    const struct tec_chain *s = &l->chains[d->chain];
    int first = -1, n = 0, each = s->plan->spec.request_slots / l->sessions;
    int own = tec_own_session(l) * each + d->first_slot;
    for (int i = own + (d->slots ? d->slots : each) - 1; i >= own; i--)
        if (!l->request_slot_taken[s->first_request_slot + i]) {
            first = i;
            n++;
        }
    int kept = 0;
    for (int i = 0; l->text_keys && i < l->o.n_decoders; i++)
        kept += share_slots(l, i, decoder) && tec_loop_text_keys_reserves(l, i, l->tick->session);
    return n > kept + kept_by_others(l, decoder) ? first : -1;
}

static bool text_in_use(const struct tec_loop *l, int text)
{
    for (int i = 0; i < l->n_live; i++)
        if (l->requests[i].text == text)
            return true;
    return false;
}

/* Takes the text record that ended first among those that no live request writes to: a text stays
 * readable until request slots + 1 others have ended after it. There are more records than live
 * requests.
 */
static int take_text(const struct tec_loop *l)
{
    int oldest = -1;
    for (int i = 0; i < l->n_texts; i++)
        if (!text_in_use(l, i) && (oldest < 0 || l->text_ended[i] < l->text_ended[oldest]))
            oldest = i;
    return oldest;
}

static void give_text(struct tec_loop *l, struct tec_request *r)
{
    r->text = take_text(l);
    struct tec_utterance *t = &l->texts[r->text];
    atomic_store_explicit(&t->count, 0, memory_order_relaxed);
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    t->id = r->id;
    t->decoder = r->decoder;
    t->session = r->session;
    t->frame = l->tick->frame;
    t->reason[0] = '\0';
    t->n_ranked = 0;
    t->finished_ns = -1;
}

/* --- what is told ---------------------------------------------------------------------------- */

static void tell(const struct tec_loop *l, enum tec_event_kind kind, const struct tec_request *r,
                 const char *what, int64_t at_ns)
{
    tec_loop_tell(l, (struct tec_event){.kind = kind,
                                        .node = l->o.decoders[r->decoder].node,
                                        .request = r->id,
                                        .what = what,
                                        .tokens = r->max,
                                        .t_ns = at_ns});
}

/* KV length of the request in tokens: shared prefix + its own prompt + generated tokens. */
static int length(const struct tec_request *r)
{
    return r->row.prefix + r->prompt_tokens + r->made;
}

/* --- ends ------------------------------------------------------------------------------------ */

void tec_requests_end(struct tec_loop *l, struct tec_request *r, const char *reason, int how,
                      int64_t at_ns)
{
    struct tec_utterance *t = &l->texts[r->text];
    bool kept = how == 1 && tec_loop_text_keys_hold(l, r, at_ns);
    r->ended = true;
    if (r->stored && !kept) {
        tec_kv_pool_drop(&tec_chain_of(l, r)->plan->prefixes, r->row.region);
        tec_loop_tell_kv(l, "remove", r, length(r), at_ns);
    }
    tec_pending_prefill_leave(l, r, at_ns);
    tec_draft_end(l, r, at_ns);
    l->request_slot_taken[tec_chain_of(l, r)->first_request_slot + r->request_slot] = kept;
    snprintf(t->reason, sizeof t->reason, "%s", reason);
    t->finished_ns = at_ns;
    l->text_ended[r->text] = ++l->n_ended;
    atomic_store_explicit(&t->done, how, memory_order_release);
}

void tec_requests_shed(struct tec_loop *l, struct tec_request *r, const char *reason)
{
    int64_t now = tec_loop_now(l);
    tell(l, TEC_EVENT_SHED, r, reason, now);
    tec_requests_end(l, r, reason, 2, now);
    l->record.shed++;
}

bool tec_requests_cancel(struct tec_loop *l, int64_t id)
{
    int64_t now = tec_loop_now(l);
    struct tec_request *r = NULL;
    for (int i = 0; i < l->n_live; i++)
        if (l->requests[i].id == id && !l->requests[i].ended && !other_session(l, &l->requests[i]))
            r = &l->requests[i];
    tec_loop_tell(
        l,
        (struct tec_event){
            .kind = TEC_EVENT_CANCEL, .node = -1, .request = id, .flag = r != NULL, .t_ns = now});
    if (r)
        tec_requests_end(l, r, "cancelled", 2, now);
    return r != NULL;
}

void tec_requests_expire(struct tec_loop *l)
{
    const struct tec_planner *p = &l->o.planner;
    int64_t now = tec_loop_now(l);
    for (int i = 0; i < l->n_live; i++) {
        struct tec_request *r = &l->requests[i];
        bool late = r->deadline_ns < now;
        if (r->ended || !l->o.decoders[r->decoder].sheds)
            continue;
        if (p->late ? p->late(p->self, l->tick->session, r->id, late) : late)
            tec_requests_shed(l, r, TEC_SHED_LATE);
    }
}

void tec_requests_sweep(struct tec_loop *l)
{
    int kept = 0;
    for (int i = 0; i < l->n_live; i++) {
        if (l->requests[i].ended)
            continue;
        if (kept != i) {
            l->requests[kept] = l->requests[i];
            l->decision.rows[kept] = l->decision.rows[i];
            l->view_rows[kept] = l->view_rows[i];
        }
        kept++;
    }
    l->n_live = l->view.n_req = kept;
}

/* --- births ---------------------------------------------------------------------------------- */

/* All request slots of a decoder taken: the planner may name a row of the view to give up, one of
 * those that have them. */
static void make_room(struct tec_loop *l, int decoder)
{
    if (!l->o.planner.evict)
        return;
    tec_loop_view(l);
    int victim = l->o.planner.evict(l->o.planner.self, &l->view, 1);
    if (victim < 0 || victim >= l->n_live || victim >= l->view.n_req ||
        !share_slots(l, l->requests[victim].decoder, decoder) ||
        other_session(l, &l->requests[victim]) || tec_loop_awaits(l, &l->requests[victim]))
        return;
    tec_requests_shed(l, &l->requests[victim], TEC_SHED_EVICTED);
    tec_requests_sweep(l);
}

/* Live requests that a new one of this decoder makes stale, which end with it: how many. */
static int stale_of(struct tec_loop *l, int decoder, bool end)
{
    int n = 0;
    for (int i = 0; l->o.decoders[decoder].supersede && i < l->n_live; i++) {
        bool stale =
            l->requests[i].decoder == decoder && l->requests[i].session == l->tick->session;
        n += stale;
        if (stale && end)
            tec_requests_shed(l, &l->requests[i], "superseded");
    }
    if (end && n > 0)
        tec_requests_sweep(l);
    return n;
}

static struct tec_request born(struct tec_loop *l, int decoder, const struct tec_ask *ask)
{
    const struct tec_decoder *d = &l->o.decoders[decoder];
    int64_t now = tec_loop_now(l);
    int64_t from_ns = d->hard ? l->tick->tick_ns : now; /* as an action's */
    bool shorter = ask && ask->max_tokens > 0 && ask->max_tokens < d->max_tokens;
    int session = l->tick->session % TEC_MAX_SESSIONS;
    return (struct tec_request){.id = l->next_id++,
                                .number = l->next_of[session < 0 ? 0 : session]++,
                                .decoder = decoder,
                                .session = l->tick->session,
                                .request_slot = free_request_slot(l, decoder),
                                .max = d->tree   ? 1
                                       : shorter ? ask->max_tokens
                                                 : d->max_tokens,
                                .prio = ask ? ask->prio : 0,
                                .born_ns = now,
                                .deadline_ns =
                                    d->deadline_us ? from_ns + d->deadline_us * 1000 : INT64_MAX,
                                .born_frame = l->tick->frame,
                                .episode = l->input ? l->input->episode : 0,
                                .shared = true,
                                .pending = -1,
                                .row = {.region = -1},
                                .draft = {.pending = -1, .row = {.region = -1}}};
}

static void refuse(struct tec_loop *l, const struct tec_request *r, struct tec_ask *ask,
                   const char *reason)
{
    l->record.refused++;
    tell(l, TEC_EVENT_REFUSE, r, reason, tec_loop_now(l));
    if (ask) {
        ask->refused = true;
        snprintf(ask->reason, sizeof ask->reason, "%s", reason);
    }
}

/* Its own prompt outlives the frame that it came with. */
static void take_prompt(struct tec_loop *l, struct tec_request *r)
{
    int prompt = l->o.decoders[r->decoder].prompt,
        most = tec_chain_of(l, r)->plan->spec.prompt_tokens;
    const struct tec_request_prompt *p = prompt > 0 ? &l->input->prompts[prompt - 1] : NULL;
    r->prompt_tokens = p && p->n <= most ? p->n : 0;
    if (r->prompt_tokens)
        memcpy(tec_request_prompt(l, r), p->ids, (size_t)r->prompt_tokens * sizeof *p->ids);
}

/* A request that makes others stale takes one of their request slots, so nobody has to make room
 * for it. */
void tec_requests_spawn(struct tec_loop *l, int decoder, struct tec_ask *ask)
{
    int stale = stale_of(l, decoder, false), chain = l->o.decoders[decoder].chain;
    int draft = l->o.decoders[decoder].draft;
    bool asked = tec_pending_prefill_there(l, chain) &&
                 (draft == 0 || tec_pending_prefill_there(l, draft - 1));
    if (asked && free_request_slot(l, decoder) < 0 && stale == 0)
        make_room(l, decoder);
    struct tec_request r = born(l, decoder, ask);
    struct tec_request_view v = tec_loop_view_of(l, &r);
    char reason[32] = "";
    bool request_slot = r.request_slot >= 0 || stale > 0, yes = request_slot && asked;
    tell(l, TEC_EVENT_ARRIVE, &r, NULL, r.born_ns);
    if (ask)
        ask->id = r.id;
    if (yes && l->o.planner.admit && !tec_loop_awaits(l, &r)) {
        tec_loop_view(l); /* with those admitted before it */
        yes = l->o.planner.admit(l->o.planner.self, &l->view, &v, reason);
    }
    if (!yes) {
        refuse(l, &r, ask,
               !asked          ? "no prompt"
               : !request_slot ? "no kv slot"
               : reason[0]     ? reason
                               : "policy");
        return;
    }
    stale_of(l, decoder, true);
    r.request_slot = free_request_slot(l, decoder);
    l->request_slot_taken[l->chains[chain].first_request_slot + r.request_slot] = true;
    take_prompt(l, &r);
    tec_pending_prefill_join(l, &r);
    give_text(l, &r);
    l->requests[l->n_live++] = r;
    tell(l, TEC_EVENT_ADMIT, &r, NULL, r.born_ns);
}

/* --- lives ----------------------------------------------------------------------------------- */

/* Draws of two requests have nothing in common, whatever their request slots and frames. */
static uint64_t seed_of(uint64_t seed, int64_t request) /* its number in its session */
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)request, TEC_NOISE_REQUESTS,
                                 (uint32_t)((uint64_t)request >> 32), 0};
    uint32_t words[4];
    tec_philox_words(counter, key, words);
    return words[0] | (uint64_t)words[1] << 32;
}

void tec_requests_start(struct tec_loop *l, struct tec_request *r, int region)
{
    const struct tec_plan *p = tec_chain_of(l, r)->plan;
    const struct tec_chain_prefix *f = &tec_chain_of(l, r)->prefix;
    const struct tec_pending_prefill *a = r->pending < 0 ? NULL : &l->pending[r->pending];
    tec_row_start(&r->row, p, region, a ? a->rows : f->rows, a ? a->ids[a->n - 1] : f->last_token,
                  r->request_slot, r->max, p->model->text.eos);
    tec_row_saw(&r->row, p, a ? a->ids : f->prompt, a ? a->n : f->n_prompt);
    r->row.sampling = l->o.decoders[r->decoder].sampling;
    r->row.sampling.seed = seed_of(r->row.sampling.seed, l->sessions > 1 ? r->number : r->id);
    tec_row_prompt(&r->row, r->prompt_tokens ? tec_request_prompt(l, r) : NULL, r->prompt_tokens);
    r->row.request = r->id;
    if (l->o.decoders[r->decoder].chooses)
        r->row.place = l->o.decoders[r->decoder].root;
}

/* The row of a request that ran beside the hard nodes was started with its launch. */
void tec_requests_store(struct tec_loop *l, struct tec_request *r, int region, int64_t at_ns)
{
    if (r->row.region < 0)
        tec_requests_start(l, r, region);
    r->stored = true;
    tec_loop_tell_kv(l, "store", r, 0, at_ns);
}

/* Give a finished text to the nodes that read it. */
static void hand_on(struct tec_loop *l, const struct tec_request *r, int64_t at_ns)
{
    const struct tec_utterance *t = &l->texts[r->text];
    int n = atomic_load_explicit(&t->count, memory_order_relaxed);
    for (int i = 0; i < l->o.n_readers; i++) {
        const struct tec_text_reader *reader = &l->o.readers[i];
        if (reader->decoder != r->decoder)
            continue;
        if (l->o.said)
            l->o.said(l->o.said_self, reader, r->session, t->tokens, n);
        tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                            .what = "remember",
                                            .kv = reader->into,
                                            .node = reader->node,
                                            .request = r->id,
                                            .tokens = n,
                                            .t_ns = at_ns});
    }
}

static void finish(struct tec_loop *l, struct tec_request *r, const char *reason, int64_t at_ns)
{
    int64_t late_ns = l->o.decoders[r->decoder].hard ? at_ns - r->deadline_ns : 0;
    if (late_ns > l->record.text_late_ns)
        l->record.text_late_ns = late_ns;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_FINISH,
                                        .node = l->o.decoders[r->decoder].node,
                                        .request = r->id,
                                        .what = reason,
                                        .tokens = r->made,
                                        .drafted = r->draft.drafted,
                                        .kept = r->draft.kept,
                                        .frames = (int)(l->tick->frame - r->born_frame + 1),
                                        .t_ns = at_ns,
                                        .since_ns = r->born_ns});
    hand_on(l, r, at_ns);
    tec_requests_end(l, r, reason, 1, at_ns);
    tec_loop_post_text(l, r, at_ns);
}

/* Why a row is done: an answer of a list is one when its place there is no root any more and
 * tokens are left, or when it has said the end token. */
static const char *reason_of(const struct tec_loop *l, const struct tec_request *r, bool stopped)
{
    const struct tec_decoder *d = &l->o.decoders[r->decoder];
    const int *tokens = l->texts[r->text].tokens;
    const struct tec_model *model = l->chains[d->chain].plan->model;
    bool ended = r->made > 0 && tec_model_ends(model, tokens[r->made - 1]);
    if (stopped)
        return "stop";
    if (d->chooses && (ended || r->row.left > 0))
        return "choice";
    return ended ? "eos" : "length";
}

/* Number of the n new tokens up to and including the one that completes a stop text first; -1 if
 * none is reached. */
static int up_to_stop(const struct tec_loop *l, const struct tec_request *r, int n)
{
    const struct tec_loop_options *o = &l->o;
    const int *tokens = l->texts[r->text].tokens;
    if (!o->decoders[r->decoder].stops.n || !o->stops ||
        !o->stops(o->stops_self, r->decoder, tokens, r->made + n))
        return -1;
    int keep = 1;
    while (keep < n && !o->stops(o->stops_self, r->decoder, tokens, r->made + keep))
        keep++;
    return keep;
}

void tec_requests_update(struct tec_loop *l, struct tec_request *r, const int *tokens, int n,
                         int64_t at_ns)
{
    struct tec_utterance *t = &l->texts[r->text];
    memcpy(t->tokens + r->made, tokens, (size_t)n * sizeof *tokens);
    int keep = n > 0 ? up_to_stop(l, r, n) : -1;
    if (keep >= 0) { /* what was made behind it in this launch was never said */
        n = keep;
        r->row.done = 1;
    }
    r->made += n;
    atomic_store_explicit(&t->count, r->made, memory_order_release);
    l->record.tokens += n;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_TOKENS,
                                        .node = l->o.decoders[r->decoder].node,
                                        .request = r->id,
                                        .tokens = n,
                                        .done = r->made,
                                        .t_ns = at_ns});
    if (r->row.done)
        finish(l, r, reason_of(l, r, keep >= 0), at_ns);
    else
        tec_loop_tell_kv(l, "update", r, length(r), at_ns);
}

void tec_requests_rank(struct tec_loop *l, struct tec_request *r, const float *likely,
                       int64_t at_ns)
{
    struct tec_utterance *t = &l->texts[r->text];
    const struct tec_decoder *d = &l->o.decoders[r->decoder];
    tec_rank(d, likely, t->ranked, l->sums);
    const struct tec_token_text *best = &d->tree->texts[t->ranked[0].index];
    memcpy(t->tokens, best->ids, (size_t)best->n * sizeof *best->ids);
    t->n_ranked = d->tree->n_texts;
    r->made = 1;
    atomic_store_explicit(&t->count, best->n, memory_order_release);
    l->record.tokens += best->n;
    finish(l, r, "ranked", at_ns);
}
