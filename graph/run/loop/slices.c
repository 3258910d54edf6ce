/* slices.c - slices of a prefill that is not in frames: as many as the frame has for it run, and
 * with the last one its requests and drafts stand on their keys. */
#include "graph/run/loop/slices.h"
#include "graph/run/loop/decision.h"
#include "graph/run/loop/drafts.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/pending_prefill.h"
#include "graph/run/loop/pictures.h"
#include "graph/run/loop/requests.h"
#include "graph/run/loop/tell.h"

void tec_slices_first(struct tec_loop *l, int pending)
{
    struct tec_pending_prefill *a = pending < 0 ? NULL : &l->pending[pending];
    if (!a || a->now > 0)
        return;
    a->planned = false;
    a->now = a->chain->slices - a->done;
    l->turns[l->n_turns] = pending;
    tec_schedule_add(l, &tec_scheduled_slice, a->chain, 0, l->n_turns++);
}

static void open_region(struct tec_loop *l, struct tec_pending_prefill *a,
                        const struct tec_prefix_input *prompt)
{
    a->region = tec_kv_pool_take(&a->chain->plan->prefixes);
    a->rows = tec_prefix_rows(a->chain->plan, prompt);
    tec_loop_tell_prefix(l, "alloc", a->chain, a->rows, tec_loop_now(l));
}

/* Its requests have their prefix. */
static void hand_over(struct tec_loop *l, struct tec_pending_prefill *a, int64_t at_ns)
{
    int at = (int)(a - l->pending);
    for (int i = 0; i < l->n_live; i++) {
        struct tec_request *r = &l->requests[i];
        if (!tec_pending_prefill_is_of(l, r, a))
            continue;
        if (r->draft.pending == at) {
            tec_draft_start(l, r, a, at_ns);
            tec_pending_prefill_had(l, &r->draft.pending, at_ns);
            continue;
        }
        tec_kv_pool_pin(&a->chain->plan->prefixes, a->region);
        tec_loop_tell_kv(l, "fork", r, a->rows, at_ns);
        tec_requests_store(l, r, a->region, at_ns);
        tec_pending_prefill_had(l, &r->pending, at_ns);
    }
}

static struct tec_pending_prefill *prefill_of(struct tec_loop *l, const struct tec_scheduled *it)
{
    return &l->pending[l->turns[it->of]];
}

/* This frame's slices have run: they are told as one, and a whole prefill is handed over. One at a
 * time is begun and not done, so behind one that is not whole no other has its turn. */
static void end_slices(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_pending_prefill *a = prefill_of(l, it);
    if (it->n > 0)
        tec_loop_tell_launch(
            l,
            (struct tec_event){.node = it->chain->prefill_node,
                               .request = l->requests[tec_pending_prefill_row(l, a)].id,
                               .flag = a->planned,
                               .slices = it->n,
                               .of = it->chain->slices},
            1, it->start_ns, it->end_ns);
    a->now = 0;
    if (a->done == a->chain->slices)
        hand_over(l, a, tec_loop_now(l));
    else
        l->n_turns = 0;
}

/* As many slices as this frame has for it, or until one has to wait. */
static bool next_slice(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_pending_prefill *a = it->of < l->n_turns ? prefill_of(l, it) : NULL;
    if (!a || (it->at == 0 &&
               (tec_loop_failed(l) || a->waiting == 0 || tec_pending_prefill_row(l, a) < 0)))
        return false;
    if (it->at > 0 && it->at < a->now && tec_loop_yields(l)) {
        a->now = it->at;
        l->record.cut = true;
    }
    if (it->at == a->now) {
        end_slices(l, it);
        return false;
    }
    l->pending_input = tec_pending_prefill_input(a);
    if (a->region < 0) {
        open_region(l, a, &l->pending_input.prefix);
        tec_loop_recompute(l, it->chain, a->memory);
    }
    *it->launch = (struct tec_launch){
        .kind = TEC_LAUNCH_slice,
        .slice = {.of = {a->region, &l->pending_input, tec_pictures_known(it->chain, &a->seen)},
                  .at = a->done}};
    return true;
}

static void fail_slice(struct tec_loop *l, struct tec_scheduled *it)
{
    (void)it;
    l->n_turns = 0;
}

/* Where the rows of its pictures were there, the slices that would make them are left out; else
 * behind these slices its own are there. */
static void share_pictures(struct tec_pending_prefill *a, const struct tec_scheduled *it)
{
    const struct tec_slice_launch *slice = &it->launch->slice;
    int towers = tec_plan_part(it->chain->plan, TEC_PART_PREFIX, 0)->picture_slices;
    if (slice->at == 0)
        a->known = slice->of.known;
    if (slice->at == 0 && a->known && towers > 1)
        a->done = towers;
    if (slice->at == towers && !a->known)
        tec_pictures_keep(it->chain, a->seen);
    int left = a->chain->slices - a->done;
    a->now = a->now < it->at + 1 + left ? a->now : it->at + 1 + left;
}

static void settle_slice(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_pending_prefill *a = prefill_of(l, it);
    const struct tec_replay *r = &it->launch->replay;
    enum tec_slice state = it->launch->slice.state;
    if (tec_loop_failed(l)) {
        fail_slice(l, it);
        return;
    }
    a->done = state == TEC_SLICE_AGAIN ? 0 : a->done + (state == TEC_SLICE_DONE);
    if (state == TEC_SLICE_DONE) {
        tec_loop_measure(l, a->chain, TEC_COST_PREFILL, 0, 1, 1, r->end_ns - r->start_ns);
        share_pictures(a, it);
    }
    if (state == TEC_SLICE_LATER) {
        a->now = it->at + 1;
        l->record.cut = true;
        return;
    }
    it->start_ns = it->n++ ? it->start_ns : r->start_ns;
    it->end_ns = r->end_ns;
}

const struct tec_scheduled_kind tec_scheduled_slice = {
    .next = next_slice, .settle = settle_slice, .fail = fail_slice, .always = true};
