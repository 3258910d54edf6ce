/* ring.c - sequences in flight: each frame takes an observation in and advances what came before,
 * in one forward; what has all its tokens leaves as an action. Rings of one plan share forwards,
 * each with a depth of its own.
 *
 * Slots: with rotation a sequence keeps the slot of its turn, and the ring turns by counting. With
 * shifting the slot is the stage, and tokens are moved after every forward, oldest first. */
#include "graph/run/ring_own.h"

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

void tec_rings_open(struct tec_loop *l)
{
    for (int i = 0; i < l->n_rings; i++)
        for (int k = 0; keeps_regions(&l->rings[i]) && k < tec_ring_spec(&l->rings[i])->stages; k++)
            tec_kv_pool_take(&l->rings[i].chain->plan->prefixes);
    tec_rings_reset(l);
}

void tec_rings_close(struct tec_loop *l)
{
    for (int i = 0; i < l->n_rings; i++) {
        const struct tec_ring_state *ring = &l->rings[i];
        empty(&l->rings[i]);
        for (int k = 0; keeps_regions(ring) && k < tec_ring_spec(ring)->stages; k++)
            tec_kv_pool_drop(&ring->chain->plan->prefixes, ring->first + k);
    }
}

/* --- entering and leaving -------------------------------------------------------------------- */

void tec_rings_reset(struct tec_loop *l)
{
    for (int i = 0; i < l->n_rings; i++) {
        struct tec_ring_state *ring = &l->rings[i];
        empty(ring);
        ring->turn = 0;
        ring->seen = UINT64_MAX; /* nothing was missing before */
        ring->broken = 0;
        ring->filling = true;
    }
}

void tec_ring_flush(struct tec_loop *l, struct tec_ring_state *ring)
{
    if (!ring->flushes || ring->n == 0)
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
    empty(ring);
    ring->filling = true;
}

/* Places the sequence's next row: its newest token is the next input. */
static void place(const struct tec_ring_state *ring, struct tec_ring_item *it)
{
    struct tec_row_state *row = &it->row;
    row->region = it->region;
    int first = ring->chain->plan->prefixes.first[row->region];
    row->tail = first + row->prefix;
    row->pos = row->prefix + it->stage - 1;
    row->slot = first + row->pos;
    row->visible = row->pos + 1;
    row->left = tec_ring_spec(ring)->stages - it->stage + 1;
    row->done = 0;
    row->eos = -1; /* judged by the ring */
    row->place = -1;
    row->token = it->stage > 0 ? it->tokens[it->stage - 1] : 0;
}

/* The newest sequence is what requests stand on. Where keys move it has no region that stays: they
 * get a copy, see copy_prefix. */
static void open_prefix(struct tec_loop *l, const struct tec_ring_state *ring,
                        const struct tec_frame_input *input, int region)
{
    if (tec_ring_spec(ring)->request_slots == 0)
        return;
    if (!keeps_regions(ring))
        tec_kv_pool_pin(&ring->chain->plan->prefixes, region);
    tec_loop_open_prefix(l, ring->chain, input, keeps_regions(ring) ? -1 : region);
}

static int last_token(const struct tec_loop *l, const struct tec_ring_state *ring,
                      const struct tec_frame_input *input)
{
    const struct tec_prefix_input *o = &tec_chain_input(l, ring->chain, input)->prefix;
    return o->ids[o->n_text - 1];
}

static void enter(struct tec_loop *l, struct tec_ring_state *ring,
                  const struct tec_frame_input *input)
{
    struct tec_ring_item *it = &ring->items[ring->n++];
    int stages = tec_ring_spec(ring)->stages;
    it->id = l->tick->frame;
    it->turn = ring->turn;
    it->captured_ns = input->captured_ns;
    it->slot = tec_ring_spec(ring)->shifts ? 0 : (int)(ring->turn % stages);
    it->region = keeps_regions(ring) ? ring->first : tec_kv_pool_take(&ring->chain->plan->prefixes);
    it->stage = 0;
    memset(&it->row, 0, sizeof it->row);
    it->row.request = it->id;
    it->row.prefix =
        tec_prefix_rows(ring->chain->plan, &tec_chain_input(l, ring->chain, input)->prefix);
    place(ring, it);
    if (tec_ring_spec(ring)
            ->apart) /* as a request's first row: it repeats its prompt's last token */
        it->row.token = last_token(l, ring, input);
    tec_ring_tell_item(l, ring, "alloc", it);
    open_prefix(l, ring, input, it->region);
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

int tec_rings_to_come(const struct tec_loop *l, const struct tec_ring_state *but)
{
    int n = 0;
    for (int i = 0; i < l->n_rings; i++) {
        const struct tec_ring_state *ring = &l->rings[i];
        int stages = tec_ring_spec(ring)->stages;
        int forwards = ring->ran ? ring->forwards_left : tec_ring_forwards(l, ring);
        if (ring == but)
            continue;
        n += !ring->ran && l->input && forwards >= stages;
        for (int k = 0; k < ring->n; k++)
            n += ring->items[k].stage < stages && ring->items[k].stage + forwards >= stages;
    }
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
        l->o.lost(l->o.user, it->id, it->captured_ns);
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

/* Slot to the next one, oldest first, so nothing is overwritten that is still to move. */
static void shift(struct tec_loop *l, struct tec_ring_state *ring)
{
    struct tec_ring_move moves[TEC_MAX_STAGES], regions[TEC_MAX_STAGES];
    struct tec_launch launch = {.kind = TEC_LAUNCH_shift,
                                .shift = {.moves = regions, .n = ring->n}};
    int tokens = 0;
    if (ring->n == 0)
        return;
    for (int i = 0; i < ring->n; i++) {
        struct tec_ring_item *it = &ring->items[i];
        moves[i] = (struct tec_ring_move){it->slot, it->slot + 1, tec_ring_stored(it)};
        regions[i] = (struct tec_ring_move){ring->first + it->slot, ring->first + it->slot + 1,
                                            moves[i].tokens};
        tokens += moves[i].tokens;
        it->slot++;
        it->region++;
        place(ring, it);
    }
    tec_executor_launch(ring->chain->executor, &launch);
    if (launch.replay.status != TEC_OK) {
        l->record.failed = true;
        return;
    }
    tec_loop_measure_ring(l, ring, TEC_COST_SHIFT, &launch.replay, tokens);
    tec_ring_tell_copy(l, ring, moves, ring->n, &launch.replay);
}

/* A copy of the sequence that has just entered, if a request of this frame is to stand on it. */
static void copy_prefix(struct tec_loop *l, const struct tec_ring_state *ring)
{
    struct tec_chain *c = ring->chain;
    bool asked = false;
    for (int i = 0; i < l->n_live; i++)
        asked |= tec_chain_of(l, &l->requests[i]) == c && !l->requests[i].stored;
    if (!asked)
        return;
    c->prefix.region = tec_kv_pool_take(&c->plan->prefixes);
    const struct tec_ring_move move = {ring->first, c->prefix.region, c->prefix.rows};
    struct tec_launch launch = {.kind = TEC_LAUNCH_shift, .shift = {.moves = &move, .n = 1}};
    tec_executor_launch(c->executor, &launch);
    l->record.failed |= launch.replay.status != TEC_OK;
    if (l->record.failed)
        return;
    tec_loop_measure_ring(l, ring, TEC_COST_SHIFT, &launch.replay, move.tokens);
    tec_ring_tell_copy(l, ring, &move, 1, &launch.replay);
}

static void add(struct tec_ring_flight *f, struct tec_ring_state *ring, int at)
{
    f->ring[f->n] = ring;
    f->item[f->n++] = &ring->items[at];
}

/* The rows of forward `at` of the frame: of the rings that have as many. */
static void gather_rows(struct tec_ring_flight *f, struct tec_ring_state *const *rings, int n,
                        int at, bool enters)
{
    *f = (struct tec_ring_flight){.by = rings[0]};
    for (int r = 0; r < n && enters; r++)
        add(f, rings[r], rings[r]->n - 1);
    f->entering = tec_ring_spec(rings[0])->apart ? 0 : f->n;
    for (int r = 0; r < n; r++)
        for (int i = rings[r]->n - 1 - enters; i >= 0 && at < rings[r]->forwards; i--)
            add(f, rings[r], i);
}

/* False: the device failed, and nothing was made. */
static bool launch(struct tec_loop *l, const struct tec_ring_flight *f,
                   const struct tec_frame_input *input, struct tec_replay *replay, int *tokens)
{
    const struct tec_prefix_input *prefixes[TEC_MAX_STAGES];
    struct tec_row_state *rows[TEC_MAX_STAGES];
    for (int i = 0; i < f->n; i++)
        rows[i] = &f->item[i]->row;
    for (int i = 0; i < f->entering; i++)
        prefixes[i] = &tec_chain_input(l, f->ring[i]->chain, input)->prefix;
    struct tec_launch launch = {.kind = TEC_LAUNCH_packed,
                                .packed = {.in = {.prefixes = prefixes,
                                                  .rows = rows,
                                                  .entering = f->entering,
                                                  .n = f->n - f->entering},
                                           .tokens = tokens}};
    tec_executor_launch(f->by->chain->executor, &launch);
    *replay = launch.replay;
    return replay->status == TEC_OK;
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
                              tec_ring_point(tec_ring_spec(f->by), f->entering, others));
    else
        tec_loop_measure_ring(l, f->by, TEC_COST_DECODE, r, others);
}

/* The prefill of a ring's new sequence, where it is a launch of its own. */
static void prefill(struct tec_loop *l, const struct tec_ring_state *ring,
                    const struct tec_frame_input *input)
{
    const struct tec_chain *c = ring->chain;
    const struct tec_observed of = {ring->items[ring->n - 1].region, tec_chain_input(l, c, input)};
    struct tec_launch launch = {.kind = TEC_LAUNCH_prefix, .prefix = {.each = &of, .n = 1}};
    tec_executor_launch(c->executor, &launch);
    const struct tec_replay replay = launch.replay;
    l->record.failed |= replay.status != TEC_OK;
    if (l->record.failed) {
        tec_loop_replayed(l, replay.start_ns, replay.end_ns);
        return;
    }
    struct tec_event event = {
        .kind = TEC_EVENT_START, .node = c->prefill_node, .request = -1, .t_ns = replay.start_ns};
    tec_loop_tell(l, event);
    event.kind = TEC_EVENT_END;
    event.since_ns = replay.start_ns;
    event.t_ns = replay.end_ns;
    tec_loop_tell(l, event);
    tec_loop_note(l, tec_loop_node_name(l, c->prefill_node), replay.start_ns, replay.end_ns);
    tec_loop_measure_prefix(l, tec_chain_index(l, c), &replay, false, 1);
}

/* Run forward `at` of the frame for those of the rings that have as many; `input`: they all take it
 * in. */
static void forward(struct tec_loop *l, struct tec_ring_state *const *rings, int n, int at,
                    const struct tec_frame_input *input)
{
    struct tec_ring_flight f;
    struct tec_replay replay = {0};
    int tokens[TEC_MAX_STAGES] = {0};
    for (int r = 0; r < n && input && tec_ring_spec(rings[r])->apart && !l->record.failed; r++)
        prefill(l, rings[r], input);
    gather_rows(&f, rings, n, at, input != NULL);
    if (f.n == 0 || l->record.failed)
        return;
    if (!launch(l, &f, input, &replay, tokens)) {
        l->record.failed = true;
        tec_loop_replayed(l, replay.start_ns, replay.end_ns);
        return;
    }
    tec_ring_tell_forward(l, &f, &replay);
    account(l, &f, &replay);
    for (int i = 0; i < f.n; i++) {
        struct tec_ring_item *it = f.item[i];
        it->tokens[it->stage++] = tokens[i];
        place(f.ring[i], it);
    }
    tec_ring_tell_tokens(l, &f, replay.end_ns);
    for (int r = 0; r < n; r++) {
        if (at >= rings[r]->forwards)
            continue;
        if (input && keeps_regions(rings[r]))
            copy_prefix(l, rings[r]);
        leave(l, rings[r]);
        if (tec_ring_spec(rings[r])->shifts && !l->record.failed)
            shift(l, rings[r]);
    }
}

int tec_ring_depth(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    const struct tec_topology *t = l->o.topology;
    int wish = l->decision.depth[tec_ring_index(l, ring)], stages = tec_ring_spec(ring)->stages;
    int deepest = t->n_depth ? t->depth[t->n_depth - 1] : stages;
    int depth = wish ? tec_snap_down(t->depth, t->n_depth, wish) : 0;
    if (depth < 1)
        depth = wish && t->n_depth ? t->depth[0] : deepest;
    return depth < stages ? depth : stages;
}

int tec_ring_forwards(const struct tec_loop *l, const struct tec_ring_state *ring)
{
    return tec_stages_forwards(tec_ring_spec(ring)->stages, tec_ring_depth(l, ring));
}

static void open_frame(struct tec_loop *l, struct tec_ring_state *ring,
                       const struct tec_frame_input *input)
{
    ring->ran = true;
    ring->forwards = tec_ring_forwards(l, ring);
    ring->seen = ring->seen << 1 | (input != NULL);
    ring->broken <<= 1;
    if (input)
        enter(l, ring, input);
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

void tec_rings_run(struct tec_loop *l, const struct tec_chain *c,
                   const struct tec_frame_input *input)
{
    struct tec_ring_state *rings[TEC_MAX_RINGS];
    int n = 0, forwards = 0;
    for (int i = 0; i < l->n_rings; i++) {
        struct tec_ring_state *ring = &l->rings[i];
        if (ring->ran || ring->chain->plan != c->plan)
            continue;
        open_frame(l, ring, input);
        forwards = ring->forwards > forwards ? ring->forwards : forwards;
        rings[n++] = ring;
    }
    for (int at = 0; at < forwards && !l->record.failed; at++) {
        for (int i = 0; i < n; i++)
            rings[i]->forwards_left = at < rings[i]->forwards ? rings[i]->forwards - 1 - at : 0;
        forward(l, rings, n, at, at == 0 ? input : NULL);
    }
    for (int i = 0; i < n; i++)
        close_frame(l, rings[i]);
    l->record.depth = tec_ring_depth(l, &l->rings[0]);
}

bool tec_ring_missed(struct tec_loop *l, struct tec_ring_state *ring, enum tec_cause *cause)
{
    int age = tec_stages_frames(tec_ring_spec(ring)->stages, tec_ring_depth(l, ring)) - 1;
    uint64_t bit = UINT64_C(1) << age;
    if (ring->broken & bit) { /* its action would have ended the filling */
        ring->filling = l->record.filling = false;
        for (int i = 0; i < l->n_rings; i++)
            l->record.filling |= l->rings[i].filling;
    }
    if (l->record.actions[ring->chain->action].release_ns >= 0 || ring->filling)
        return false;
    *cause = ring->broken & bit ? TEC_CAUSE_MODEL
             : ring->seen & bit ? TEC_CAUSE_PLAN
                                : TEC_CAUSE_INPUT;
    return true;
}
