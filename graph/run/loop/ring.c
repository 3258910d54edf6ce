/* ring.c - sequences in flight: each frame takes an observation in and advances what came before,
 * in one forward; what has all its tokens leaves as an action. Rings of one plan share forwards,
 * each with a depth of its own; so do the rings that several sessions have.
 *
 * Slots: with rotation a sequence keeps the slot of its turn, and the ring turns by counting. With
 * shifting the slot is the stage, and tokens move with every forward (ring_moves.c). */
#include "graph/run/loop/ring.h"
#include "graph/run/loop/acting.h"
#include "graph/run/loop/decision.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/prefix.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/ring_moves.h"
#include "graph/run/loop/ring_tell.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/text_first.h"
#include "graph/run/loop/texts.h"

#include <string.h>

/* --- regions --------------------------------------------------------------------------------- */

/* Where keys move a ring keeps its regions, one a stage; else each sequence takes one. */
static bool keeps_regions(const struct tec_ring_state *ring)
{
    return tec_ring_spec(ring)->shifts;
}

static void drop_region(const struct tec_ring_state *ring, const struct tec_ring_item *it)
{
    if (!keeps_regions(ring))
        tec_kv_pool_drop(&ring->chain->plan->prefixes, it->region);
}

static void empty(struct tec_ring_state *ring)
{
    for (int i = 0; i < ring->n; i++)
        drop_region(ring, &ring->items[i]);
    ring->n = 0;
}

/* It fills from here on: what came before was neither missing nor lost. */
static void restart(struct tec_ring_state *ring)
{
    empty(ring);
    ring->seen = UINT64_MAX;
    ring->broken = 0;
    ring->filling = true;
}

void tec_rings_open(struct tec_loop *l)
{
    for (int i = 0; i < l->n_rings * l->sessions; i++)
        for (int k = 0; keeps_regions(&l->rings[i]) && k < tec_ring_spec(&l->rings[i])->stages; k++)
            tec_kv_pool_take(&l->rings[i].chain->plan->prefixes);
    for (int s = 0; s < l->sessions; s++)
        tec_rings_empty(l, s);
}

void tec_rings_close(struct tec_loop *l)
{
    for (int i = 0; i < l->n_rings * l->sessions; i++) {
        const struct tec_ring_state *ring = &l->rings[i];
        empty(&l->rings[i]);
        for (int k = 0; keeps_regions(ring) && k < tec_ring_spec(ring)->stages; k++)
            tec_kv_pool_drop(&ring->chain->plan->prefixes, ring->first + k);
    }
}

/* --- entering and leaving -------------------------------------------------------------------- */

void tec_rings_empty(struct tec_loop *l, int session)
{
    for (int i = 0; i < l->n_rings; i++) {
        struct tec_ring_state *ring = tec_ring_first(l, i) + session;
        restart(ring);
        ring->turn = 0;
    }
}

void tec_ring_flush(struct tec_loop *l, struct tec_ring_state *ring)
{
    if (ring->n == 0)
        return;
    struct tec_ring_event more = tec_ring_event();
    int64_t ids[TEC_MAX_STAGES];
    int slots[TEC_MAX_STAGES];
    for (int i = 0; i < ring->n; i++) {
        ids[i] = ring->items[i].id;
        slots[i] = ring->items[i].slot;
    }
    more.slots = slots;
    tec_ring_tell_kv(
        l, ring,
        (struct tec_event){
            .what = "flush", .request = -1, .requests = ids, .n = ring->n, .t_ns = tec_loop_now(l)},
        more);
    restart(ring);
}

void tec_rings_begin(struct tec_loop *l, int64_t episode)
{
    for (int i = 0; i < l->n_rings; i++) {
        struct tec_ring_state *ring = tec_ring_own(l, tec_ring_first(l, i));
        if (ring->episode == episode)
            continue;
        tec_ring_flush(l, ring);
        restart(ring);
        ring->episode = episode;
    }
}

/* The newest sequence is what requests stand on. Where keys move it has no region that stays: those
 * of this frame get a copy. */
static void open_prefix(struct tec_loop *l, struct tec_ring_state *ring, int region)
{
    struct tec_kv_pool *pool = &ring->chain->plan->prefixes;
    ring->copy = -1;
    if (tec_ring_spec(ring)->request_slots == 0)
        return;
    if (!keeps_regions(ring))
        tec_kv_pool_pin(pool, region);
    else if (tec_ring_asked(l, ring->chain))
        ring->copy = tec_kv_pool_take(pool);
    tec_loop_open_prefix(l, ring->chain, l->input, keeps_regions(ring) ? ring->copy : region);
}

static void enter(struct tec_loop *l, struct tec_ring_state *ring)
{
    const struct tec_prefix_input *o = &ring->input->prefix;
    struct tec_ring_item *it = &ring->items[ring->n++];
    int stages = tec_ring_spec(ring)->stages;
    it->id = l->tick->frame;
    it->turn = ring->turn;
    it->captured_ns = l->input->captured_ns;
    it->slot = tec_ring_spec(ring)->shifts ? 0 : (int)(ring->turn % stages);
    it->region = keeps_regions(ring) ? ring->first : tec_kv_pool_take(&ring->chain->plan->prefixes);
    it->stage = 0;
    memset(&it->row, 0, sizeof it->row);
    it->row.request = it->id;
    it->row.prefix = tec_prefix_rows(ring->chain->plan, o);
    tec_ring_place(ring, it);
    if (tec_ring_spec(ring)
            ->apart) /* as a request's first row: it repeats its prompt's last token */
        it->row.token = o->ids[o->n_text - 1];
    tec_ring_tell_item(l, ring, "alloc", it);
    open_prefix(l, ring, it->region);
}

static void drop(struct tec_ring_state *ring, int at)
{
    drop_region(ring, &ring->items[at]);
    ring->n--;
    memmove(&ring->items[at], &ring->items[at + 1], (size_t)(ring->n - at) * sizeof ring->items[0]);
}

/* Sequences younger than the one that leaves, which will have all tokens in this frame too. */
static int to_come(const struct tec_ring_state *ring, const struct tec_ring_item *leaves)
{
    int n = 0;
    for (const struct tec_ring_item *it = leaves + 1; it < ring->items + ring->n; it++)
        n += it->stage + ring->forwards_left >= tec_ring_spec(ring)->stages;
    return n;
}

static void release(struct tec_loop *l, struct tec_ring_state *ring, const struct tec_ring_item *it)
{
    int action = ring->chain->action;
    struct tec_action_record *a = &l->record.actions[action];
    a->to_come = to_come(ring, it);
    l->record.to_come = a->to_come + l->actions_due + tec_rings_to_come(l, ring);
    for (int i = 0; i < tec_ring_spec(ring)->stages; i++)
        ring->chain->chunk[i] = (float)it->tokens[i];
    ring->filling = false;
    tec_loop_release(l, action, it->id, it->captured_ns);
    const struct tec_ring_event more = tec_ring_event();
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_RELEASE,
                                        .node = l->o.actions[action].node,
                                        .request = it->id,
                                        .frames = (int)(ring->turn - it->turn),
                                        .t_ns = a->release_ns,
                                        .since_ns = it->captured_ns,
                                        .flag = a->missed,
                                        .chunk = ring->chain->chunk,
                                        .ring = &more});
}

/* An end token before the action is whole: what upstream makes of it is no action. */
static void break_off(struct tec_loop *l, struct tec_ring_state *ring,
                      const struct tec_ring_item *it)
{
    const struct tec_ring_event more = tec_ring_event();
    int64_t age = ring->turn - it->turn;
    if (age < 64)
        ring->broken |= UINT64_C(1) << age;
    if (l->o.lost && ring->chain->action == 0)
        l->o.lost(l->o.user, l->record.session, it->id, it->captured_ns);
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_FINISH,
                                        .what = "eos",
                                        .node = tec_chain_actor(l, ring->chain),
                                        .request = it->id,
                                        .tokens = it->stage,
                                        .frames = (int)age,
                                        .t_ns = tec_loop_now(l),
                                        .since_ns = it->captured_ns,
                                        .ring = &more});
}

/* Oldest first. */
static void leave(struct tec_loop *l, struct tec_ring_state *ring)
{
    int stages = tec_ring_spec(ring)->stages, eos = ring->chain->plan->model->text.eos;
    for (int i = 0; i < ring->n;) {
        struct tec_ring_item *it = &ring->items[i];
        bool whole = it->stage == stages;
        if (!whole && it->tokens[it->stage - 1] != eos) {
            i++;
            continue;
        }
        if (whole)
            release(l, ring, it);
        else
            break_off(l, ring, it);
        tec_ring_tell_item(l, ring, "evict", it);
        drop(ring, i);
    }
}

/* --- forwards -------------------------------------------------------------------------------- */

static struct tec_ring_state *ring_of(struct tec_loop *l, const struct tec_scheduled *it)
{
    return &l->rings[it->of];
}

static void add(struct tec_ring_flight *f, struct tec_ring_state *ring, int at)
{
    f->ring[f->n] = ring;
    f->item[f->n++] = &ring->items[at];
}

/* The rows of forward `at` of the frame: of the rings that have as many. */
static void gather_rows(struct tec_loop *l, int at)
{
    struct tec_ring_flight *f = &l->flight;
    struct tec_ring_state *const *rings = f->rings;
    f->n = 0;
    f->by = rings[0];
    for (int r = 0; r < f->n_rings; r++)
        if (tec_ring_enters(rings[r], at))
            add(f, rings[r], rings[r]->n - 1);
    f->entering = tec_ring_spec(rings[0])->apart ? 0 : f->n;
    for (int r = 0; r < f->n_rings; r++)
        for (int i = rings[r]->n - 1 - tec_ring_enters(rings[r], at);
             i >= 0 && at < rings[r]->forwards; i--)
            add(f, rings[r], i);
}

/* Forward `of` of the frame; the first takes the observations in, where there are any. */
static bool next_forward(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_ring_flight *f = &l->flight;
    f->made = false;
    for (int r = 0; r < f->n_rings; r++)
        f->rings[r]->forwards_left =
            it->of < f->rings[r]->forwards ? f->rings[r]->forwards - 1 - it->of : 0;
    gather_rows(l, it->of);
    for (int i = 0; i < f->n; i++)
        f->rows[i] = &f->item[i]->row;
    for (int i = 0; i < f->entering; i++)
        f->prefixes[i] = &f->ring[i]->input->prefix;
    *it->launch = (struct tec_launch){.kind = TEC_LAUNCH_packed,
                                      .packed = {.in = {.prefixes = f->prefixes,
                                                        .rows = f->rows,
                                                        .entering = f->entering,
                                                        .n = f->n - f->entering,
                                                        .moves = f->regions,
                                                        .n_moves = tec_ring_list_moves(l, it->of)},
                                                 .tokens = f->tokens}};
    return f->n > 0;
}

static void account(struct tec_loop *l, const struct tec_ring_flight *f, const struct tec_replay *r)
{
    int others = f->n - f->entering;
    const char *name = f->entering ? f->by->packed : f->by->alone;
    struct tec_launch_record *record = tec_loop_note(l, name, r->start_ns, r->end_ns);
    record->rows = record->batch = others;
    l->record.rows += f->n;
    l->record.tokens += f->n;
    if (f->entering)
        tec_loop_measure_ring(l, f->by, TEC_COST_PACKED, r,
                              tec_launch_ring_point(tec_ring_spec(f->by), f->entering, others));
    else
        tec_loop_measure_ring(l, f->by, TEC_COST_DECODE, r, others);
}

static void settle_forward(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_ring_flight *f = &l->flight;
    const struct tec_replay *r = &it->launch->replay;
    f->made = true;
    f->end_ns = r->end_ns;
    tec_ring_tell_forward(l, f, r);
    account(l, f, r);
    for (int i = 0; i < f->n; i++) {
        struct tec_ring_item *item = f->item[i];
        item->tokens[item->stage++] = f->tokens[i];
        tec_ring_place(f->ring[i], item);
    }
    tec_ring_tell_tokens(l, f, r->end_ns);
}

const struct tec_scheduled_kind tec_scheduled_forward = {
    .next = next_forward, .settle = settle_forward, .once = true};

/* The prefill of a ring's new sequence, where it is a launch of its own. */
static bool next_enter(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_ring_state *ring = ring_of(l, it);
    it->observed = (struct tec_observed){.region = ring->items[ring->n - 1].region,
                                         .input = tec_chain_input(l, it->chain, l->input)};
    tec_loop_recompute(l, it->chain, it->observed.input->memory);
    *it->launch =
        (struct tec_launch){.kind = TEC_LAUNCH_prefix, .prefix = {.each = &it->observed, .n = 1}};
    return true;
}

static void settle_enter(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_replay *r = &it->launch->replay;
    tec_loop_tell_launch(l, (struct tec_event){.node = it->chain->prefill_node, .request = -1}, 1,
                         r->start_ns, r->end_ns);
    tec_loop_measure_prefix(l, it->chain, r, false, 1);
}

const struct tec_scheduled_kind tec_scheduled_enter = {
    .next = next_enter, .settle = settle_enter, .once = true};

/* What the forward has made leaves even if a later launch has failed. */
static bool next_leave(struct tec_loop *l, struct tec_scheduled *it)
{
    if (l->flight.made)
        leave(l, ring_of(l, it));
    return false;
}

const struct tec_scheduled_kind tec_scheduled_leave = {.next = next_leave, .always = true};

static void open_frame(struct tec_loop *l, struct tec_ring_state *ring)
{
    const struct tec_chain_input *in = l->input ? tec_loop_hear(l, ring->chain) : NULL;
    if (in && (tec_loop_news(&ring->given, in, l->input->episode) & 1U) && ring->flushes)
        tec_ring_flush(l, ring); /* what was said is an instruction as any other */
    ring->ran = true;
    ring->who = l->turn;
    ring->input = l->input ? tec_chain_input(l, ring->chain, l->input) : NULL;
    ring->forwards = tec_ring_forwards(l, ring);
    ring->seen = ring->seen << 1 | (l->input != NULL);
    ring->broken <<= 1;
    if (l->input)
        enter(l, ring);
}

static void close_frame(struct tec_loop *l, struct tec_ring_state *ring)
{
    if (l->record.failed)
        empty(ring);
    ring->turn++;
    if (!tec_ring_spec(ring)->shifts && !l->record.failed) {
        struct tec_ring_event more = tec_ring_event();
        more.base = (int)(ring->turn % tec_ring_spec(ring)->stages);
        tec_ring_tell_kv(
            l, ring,
            (struct tec_event){
                .what = "rotate", .request = -1, .tokens = -1, .t_ns = tec_loop_now(l)},
            more);
    }
    l->record.filling |= ring->filling;
}

static bool next_close(struct tec_loop *l, struct tec_scheduled *it)
{
    (void)it;
    for (int i = 0; i < l->flight.n_rings; i++) {
        tec_loop_turn(l, l->flight.rings[i]->who);
        close_frame(l, l->flight.rings[i]);
    }
    l->record.depth = tec_ring_depth(l, &l->rings[0]);
    return false;
}

const struct tec_scheduled_kind tec_scheduled_close = {.next = next_close, .always = true};

/* Behind a forward, of the rings that took part. */
static void add_behind(struct tec_loop *l, int at)
{
    for (int r = 0; r < l->flight.n_rings; r++) {
        const struct tec_ring_state *ring = l->flight.rings[r];
        if (at >= ring->forwards)
            continue;
        tec_ring_add_told(l, ring, tec_ring_enters(ring, at));
        tec_schedule_add(l, &tec_scheduled_leave, ring->chain, ring->who, (int)(ring - l->rings));
        tec_ring_add_shift(l, ring);
    }
}

/* Of the session whose turn it is. */
static void add_ring(struct tec_loop *l, struct tec_ring_state *ring)
{
    open_frame(l, ring);
    l->flight.rings[l->flight.n_rings++] = ring;
    if (l->input && tec_ring_spec(ring)->apart)
        tec_schedule_add(l, &tec_scheduled_enter, ring->chain, ring->who, (int)(ring - l->rings));
}

void tec_rings_add(struct tec_loop *l, struct tec_chain *c)
{
    struct tec_ring_flight *f = &l->flight;
    int forwards = 0;
    f->n_rings = 0;
    f->made = false;
    for (int i = 0; i < l->n_rings * l->n_own; i++) {
        struct tec_ring_state *first = tec_ring_first(l, i / l->n_own);
        tec_loop_turn(l, i % l->n_own);
        if (first->chain->plan == c->plan && !l->tick->rests && !tec_ring_own(l, first)->ran)
            add_ring(l, tec_ring_own(l, first));
    }
    for (int r = 0; r < f->n_rings; r++)
        forwards = f->rings[r]->forwards > forwards ? f->rings[r]->forwards : forwards;
    for (int at = 0; at < forwards; at++) {
        tec_schedule_add(l, &tec_scheduled_forward, f->rings[0]->chain, f->rings[0]->who, at);
        add_behind(l, at);
    }
    if (forwards > 0)
        tec_schedule_add(l, &tec_scheduled_close, c, f->rings[0]->who, 0);
    if (c->says && tec_loop_observed(l))
        tec_loop_add_texts(l, c, l->n_own - 1, -1);
}
