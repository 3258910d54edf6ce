/* text_keys.c - the keys of finished texts that action nodes read.
 *
 * Of a decoder that actions act on, each session keeps the last finished text: its request slot and
 * its region are not given back when the request ends, but when the next text is finished. A text's
 * last token was chosen and never read, so it has no key; one more step of decode makes it. */
#include "graph/run/loop/text_keys.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/tell.h"

#include <string.h>

/* That of a decoder and of a session, which is the only one where a frame has one. */
static struct tec_text_keys *place_of(const struct tec_loop *l, int decoder, int session)
{
    int at = l->sessions > 1 ? session : 0;
    return &l->text_keys[decoder * l->sessions + at];
}

static size_t state_of(const struct tec_loop *l, int decoder)
{
    return (size_t)tec_model_state(l->chains[l->o.decoders[decoder].chain].plan->model);
}

enum tec_status tec_loop_text_keys_create(struct tec_loop *l, struct tec_error *err)
{
    size_t most = 0, n = (size_t)l->o.n_decoders * (size_t)l->sessions;
    for (int d = 0; d < l->o.n_decoders; d++)
        if (l->o.decoders[d].keeps_keys && state_of(l, d) + 1 > most)
            most = state_of(l, d) + 1;
    if (!most)
        return TEC_OK;
    l->text_keys = TEC_NEW(&l->arena, n, struct tec_text_keys);
    l->seen_state = TEC_NEW(&l->arena, most * (size_t)l->request_slots, float);
    l->state_size = most;
    return l->text_keys && l->seen_state
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for the keys of texts");
}

bool tec_loop_text_keys_reserves(const struct tec_loop *l, int decoder, int session)
{
    return l->o.decoders[decoder].keeps_keys && !place_of(l, decoder, session)->held;
}

static float *state_at(const struct tec_loop *l, const struct tec_request *r)
{
    int slot = tec_chain_of(l, r)->first_request_slot + r->request_slot;
    return l->seen_state + (size_t)slot * l->state_size;
}

void tec_loop_text_keys_see(struct tec_loop *l, struct tec_request *r)
{
    const struct tec_chain *c = tec_chain_of(l, r);
    const float *state = c->keeps   ? c->prefix.state
                         : l->input ? l->input->chains[tec_chain_at(l, r)].state
                                    : NULL;
    if (!l->o.decoders[r->decoder].keeps_keys)
        return;
    r->seen = c->prefix.frame;
    r->captured_ns = c->prefix.captured_ns;
    if (state)
        memcpy(state_at(l, r), state, state_of(l, r->decoder) * sizeof *state);
}

/* The region and the request slot go back. */
static void give_back(struct tec_loop *l, int decoder, struct tec_text_keys *k, int64_t at_ns)
{
    struct tec_chain *c = &l->chains[l->o.decoders[decoder].chain];
    if (!k->held)
        return;
    k->held = false;
    tec_kv_pool_drop(&c->plan->prefixes, k->row.region);
    l->request_slot_taken[c->first_request_slot + k->request_slot] = false;
    tec_loop_tell_cache(l, "remove", tec_loop_texts(l, decoder), -1, k->row.request,
                        k->row.prefix + k->text, at_ns);
}

bool tec_loop_text_keys_hold(struct tec_loop *l, const struct tec_request *r, int64_t at_ns)
{
    const struct tec_utterance *t = &l->texts[r->text];
    int n = atomic_load_explicit(&t->count, memory_order_relaxed);
    if (!l->o.decoders[r->decoder].keeps_keys || !r->stored || n < 1)
        return false;
    struct tec_text_keys *k = place_of(l, r->decoder, r->session);
    int text = r->prompt_tokens + n, visible = r->row.prefix + text;
    give_back(l, r->decoder, k, at_ns);
    *k = (struct tec_text_keys){.held = true,
                                .request_slot = r->request_slot,
                                .text = text,
                                .session = r->session,
                                .episode = r->episode,
                                .seen = r->seen,
                                .captured_ns = r->captured_ns,
                                .number = ++l->n_held,
                                .state = state_at(l, r),
                                .row = r->row};
    /* The step that reads the last token: what a text's stop has cut off was read as well. */
    k->row.token = t->tokens[n - 1];
    k->row.pos += visible - k->row.visible;
    k->row.visible = visible;
    k->row.slot = k->row.tail + text - 1;
    k->row.left = 1;
    k->row.done = k->row.waiting = 0;
    k->row.eos = k->row.place = -1;
    k->row.sampling = (struct tec_sampling){.top_p = 1.0F};
    k->row.used = NULL;
    return true;
}

/* One launch for as many of a decoder as the largest captured batch holds. */
static bool next_keys(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_incomplete_keys *due = &l->incomplete;
    for (int n = 0; it->of < l->o.n_decoders; it->of++) {
        it->chain = &l->chains[l->o.decoders[it->of].chain];
        int largest = tec_plan_batch(it->chain->plan);
        for (int i = 0; i < l->sessions && n < largest; i++) {
            struct tec_text_keys *k = &l->text_keys[it->of * l->sessions + i];
            if (k->held && !k->complete) {
                due->rows[n] = &k->row;
                due->keys[n++] = k;
            }
        }
        if (n == 0)
            continue;
        *it->launch = (struct tec_launch){
            .kind = TEC_LAUNCH_decode,
            .decode = {
                .rows = due->rows, .n = n, .k = 1, .tokens = due->tokens, .made = due->made}};
        return true;
    }
    return false;
}

static void settle_keys(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_replay *replay = &it->launch->replay;
    int64_t ids[TEC_MAX_SESSIONS];
    int n = it->launch->decode.n;
    for (int i = 0; i < n; i++) {
        l->incomplete.keys[i]->complete = true;
        ids[i] = l->incomplete.rows[i]->request;
    }
    tec_loop_tell_rows(l, replay, ids, n, l->o.decoders[it->of].node);
    tec_loop_measure(l, it->chain, TEC_COST_DECODE, n, 1, 1, replay->end_ns - replay->start_ns);
}

const struct tec_scheduled_kind tec_scheduled_keys = {.next = next_keys, .settle = settle_keys};

const struct tec_text_keys *tec_loop_text_keys_of(const struct tec_loop *l, int action)
{
    const struct tec_text_keys *best = NULL;
    for (int d = 0; l->text_keys && l->input && d < l->o.n_decoders; d++) {
        if (!(l->o.actions[action].texts >> d & 1U))
            continue;
        const struct tec_text_keys *k = place_of(l, d, l->tick->session);
        bool own = k->held && k->complete && k->session == l->tick->session &&
                   k->episode == l->input->episode;
        if (own && (!best || k->number > best->number))
            best = k;
    }
    return best;
}

void tec_loop_text_keys_reset(struct tec_loop *l)
{
    for (int d = 0; l->text_keys && d < l->o.n_decoders; d++)
        give_back(l, d, &l->text_keys[d * l->sessions + tec_own_session(l)], tec_loop_now(l));
}
