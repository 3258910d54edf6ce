/* ring.c - sequences in flight: each frame takes an observation in and advances what came before,
 * in one forward; what has all its tokens leaves as an action.
 *
 * Slots: with rotation a sequence keeps the slot of its turn, and the ring turns by counting. With
 * shifting the slot is the stage, and tokens are moved after every forward, oldest first. */
#include "graph/run/state.h"

#include <string.h>

static const struct tec_plan_spec *spec_of(const struct tec_loop *l)
{
    return &l->ring.chain->plan->spec;
}

static int64_t token_bytes(const struct tec_loop *l)
{
    return tec_kv_token_bytes(&l->ring.chain->plan->space.shape);
}

/* Tokens of it whose keys are there. */
static int stored(const struct tec_ring_item *it)
{
    return it->row.prefix + (it->stage > 0 ? it->stage - 1 : 0);
}

int64_t tec_ring_used(const struct tec_loop *l)
{
    int64_t tokens = 0;
    for (int i = 0; i < l->ring.n; i++)
        tokens += stored(&l->ring.items[i]);
    return tokens;
}

/* --- what is told ---------------------------------------------------------------------------- */

static struct tec_ring_event told(void)
{
    return (struct tec_ring_event){.slot = -1, .base = -1};
}

static void tell_kv(const struct tec_loop *l, const char *what, const struct tec_ring_item *it,
                    struct tec_ring_event ring, int tokens)
{
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                        .what = what,
                                        .kv = l->ring.chain->ring,
                                        .node = -1,
                                        .request = it ? it->id : -1,
                                        .tokens = tokens,
                                        .ring = &ring,
                                        .t_ns = tec_loop_now(l)});
}

static void tell_item(const struct tec_loop *l, const char *what, const struct tec_ring_item *it)
{
    struct tec_ring_event ring = told();
    ring.slot = it->slot;
    tell_kv(l, what, it, ring, stored(it));
}

/* Keys that each row segment of the coming forward sees; n of them are told of, youngest first. */
static int segments_of(const struct tec_loop *l, bool enters,
                       struct tec_ring_segment segments[TEC_MAX_STAGES])
{
    int n = 0;
    for (int i = l->ring.n - 1; i >= 0; i--) {
        const struct tec_ring_item *it = &l->ring.items[i];
        bool whole = enters && n == 0;
        segments[n++] = (struct tec_ring_segment){
            .request = it->id,
            .stage = it->stage,
            .slot = it->slot,
            .rows = whole ? it->row.prefix : 1,
            .pos = whole ? 0 : it->row.prefix + it->stage - 1,
            .visible = it->row.prefix + it->stage,
        };
    }
    return n;
}

static void tell_launch(const struct tec_loop *l, const char *what, int64_t start, int64_t end)
{
    const struct tec_ring_event ring = told();
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_END,
                                        .what = what,
                                        .node = -1,
                                        .request = -1,
                                        .ring = &ring,
                                        .t_ns = end,
                                        .since_ns = start});
}

static void tell_start(const struct tec_loop *l, const char *what, int64_t at,
                       const struct tec_ring_segment *segments, int n)
{
    struct tec_ring_event ring = told();
    int rows = 0;
    for (int i = 0; i < n; i++)
        rows += segments[i].rows;
    ring.segments = segments;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_START,
                                        .what = what,
                                        .node = -1,
                                        .request = -1,
                                        .rows = rows,
                                        .n = n,
                                        .ring = &ring,
                                        .t_ns = at});
}

/* On a device the copies are made inside the forward, layer by layer, and its time holds theirs:
 * the mark, where they began, is then its start. */
static void tell_gather(const struct tec_loop *l, const struct tec_replay *r,
                        const struct tec_ring_segment *segments, int n)
{
    struct tec_ring_event ring = told();
    int64_t tokens = 0;
    if (!spec_of(l)->gathers)
        return;
    for (int i = 0; i < n; i++)
        tokens += segments[i].visible;
    ring.bytes = tokens * token_bytes(l);
    tell_start(l, "gather", r->mark_ns[TEC_MARK_SHIFT], NULL, 0);
    tell_launch(l, "gather", r->mark_ns[TEC_MARK_SHIFT], r->start_ns);
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                        .what = "gather",
                                        .kv = l->ring.chain->ring,
                                        .node = -1,
                                        .request = -1,
                                        .tokens = (int)tokens,
                                        .ring = &ring,
                                        .t_ns = r->start_ns});
}

/* Youngest first, as the rows were. */
static void tell_tokens(const struct tec_loop *l, int64_t at_ns)
{
    struct tec_ring_event ring = told();
    int64_t ids[TEC_MAX_STAGES];
    int done[TEC_MAX_STAGES], n = 0;
    for (int i = l->ring.n - 1; i >= 0; i--) {
        ids[n] = l->ring.items[i].id;
        done[n++] = l->ring.items[i].stage;
    }
    ring.done = done;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_TOKENS,
                                        .node = -1,
                                        .request = -1,
                                        .requests = ids,
                                        .n = n,
                                        .ring = &ring,
                                        .t_ns = at_ns});
}

/* --- entering and leaving -------------------------------------------------------------------- */

void tec_ring_reset(struct tec_loop *l)
{
    l->ring.n = 0;
    l->ring.turn = 0;
    l->ring.seen = UINT64_MAX; /* nothing was missing before */
    l->ring.broken = 0;
    l->ring.filling = true;
}

void tec_ring_flush(struct tec_loop *l)
{
    struct tec_ring_state *ring = &l->ring;
    if (!l->ring.chain->flushes || ring->n == 0)
        return;
    struct tec_ring_event event = told();
    int64_t ids[TEC_MAX_STAGES];
    int slots[TEC_MAX_STAGES];
    for (int i = 0; i < ring->n; i++) {
        ids[i] = ring->items[i].id;
        slots[i] = ring->items[i].slot;
    }
    event.slots = slots;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                        .what = "flush",
                                        .kv = l->ring.chain->ring,
                                        .node = -1,
                                        .request = -1,
                                        .requests = ids,
                                        .n = ring->n,
                                        .ring = &event,
                                        .t_ns = tec_loop_now(l)});
    ring->n = 0;
    ring->filling = true;
}

/* Places the sequence's next row: its newest token is the next input. */
static void place(const struct tec_loop *l, struct tec_ring_item *it)
{
    int first = l->ring.chain->plan->prefixes.first[it->slot];
    struct tec_row_state *row = &it->row;
    row->region = it->slot;
    row->tail = first + row->prefix;
    row->pos = row->prefix + it->stage - 1;
    row->slot = first + row->pos;
    row->visible = row->pos + 1;
    row->left = spec_of(l)->stages - it->stage + 1;
    row->done = 0;
    row->eos = -1; /* judged by the ring */
    row->token = it->stage > 0 ? it->tokens[it->stage - 1] : 0;
}

static void enter(struct tec_loop *l, const struct tec_frame_input *input)
{
    struct tec_ring_state *ring = &l->ring;
    struct tec_ring_item *it = &ring->items[ring->n++];
    it->id = l->tick->frame;
    it->turn = ring->turn;
    it->captured_ns = input->captured_ns;
    it->slot = spec_of(l)->shifts ? 0 : (int)(ring->turn % spec_of(l)->stages);
    it->stage = 0;
    memset(&it->row, 0, sizeof it->row);
    it->row.request = it->id;
    it->row.prefix =
        tec_prefix_rows(l->ring.chain->plan, &tec_chain_input(l, l->ring.chain, input)->prefix);
    place(l, it);
    tell_item(l, "alloc", it);
}

static void drop(struct tec_ring_state *ring, int at)
{
    ring->n--;
    memmove(&ring->items[at], &ring->items[at + 1], (size_t)(ring->n - at) * sizeof ring->items[0]);
}

/* Sequences younger than the one that leaves, which will have all tokens in this frame too. */
static int to_come(const struct tec_loop *l, const struct tec_ring_item *leaves)
{
    const struct tec_ring_state *ring = &l->ring;
    int n = 0;
    for (const struct tec_ring_item *it = leaves + 1; it < ring->items + ring->n; it++)
        n += it->stage + ring->forwards_left >= spec_of(l)->stages;
    return n;
}

static void release(struct tec_loop *l, const struct tec_ring_item *it)
{
    int action = l->ring.chain->action;
    struct tec_action_record *a = &l->record.actions[action];
    a->to_come = l->record.to_come = to_come(l, it);
    for (int i = 0; i < spec_of(l)->stages; i++)
        l->ring.chain->chunk[i] = (float)it->tokens[i];
    l->ring.filling = false;
    tec_loop_release(l, action, it->id, it->captured_ns);
    const struct tec_ring_event ring = told();
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_RELEASE,
                                        .node = l->o.actions[action].node,
                                        .request = it->id,
                                        .frames = (int)(l->ring.turn - it->turn),
                                        .t_ns = a->release_ns,
                                        .since_ns = it->captured_ns,
                                        .flag = a->missed,
                                        .chunk = l->ring.chain->chunk,
                                        .ring = &ring});
}

/* An end token before the action is whole: what upstream makes of it is no action. */
static void break_off(struct tec_loop *l, const struct tec_ring_item *it)
{
    const struct tec_ring_event ring = told();
    int64_t age = l->ring.turn - it->turn;
    if (age < 64)
        l->ring.broken |= UINT64_C(1) << age;
    if (l->o.lost)
        l->o.lost(l->o.user, it->id, it->captured_ns);
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_FINISH,
                                        .what = "eos",
                                        .node = tec_chain_actor(l, l->ring.chain),
                                        .request = it->id,
                                        .tokens = it->stage,
                                        .frames = (int)age,
                                        .t_ns = tec_loop_now(l),
                                        .since_ns = it->captured_ns,
                                        .ring = &ring});
}

/* Oldest first. */
static void leave(struct tec_loop *l)
{
    struct tec_ring_state *ring = &l->ring;
    int stages = spec_of(l)->stages, eos = l->ring.chain->plan->model->text.eos;
    for (int i = 0; i < ring->n;) {
        struct tec_ring_item *it = &ring->items[i];
        bool whole = it->stage == stages;
        if (!whole && it->tokens[it->stage - 1] != eos) {
            i++;
            continue;
        }
        if (whole)
            release(l, it);
        else
            break_off(l, it);
        tell_item(l, "evict", it);
        drop(ring, i);
    }
}

/* --- forwards -------------------------------------------------------------------------------- */

/* Slot to the next one, oldest first, so nothing is overwritten that is still to move. */
static void shift(struct tec_loop *l)
{
    struct tec_ring_state *ring = &l->ring;
    struct tec_ring_move moves[TEC_MAX_STAGES];
    struct tec_ring_event event = told();
    struct tec_replay replay = {0};
    int64_t tokens = 0;
    if (ring->n == 0)
        return;
    for (int i = 0; i < ring->n; i++) {
        struct tec_ring_item *it = &ring->items[i];
        moves[i] = (struct tec_ring_move){it->slot, it->slot + 1, stored(it)};
        tokens += moves[i].tokens;
        it->slot++;
        place(l, it);
    }
    l->ring.chain->executor->shift(l->ring.chain->executor->self, moves, ring->n, &replay);
    if (replay.status != TEC_OK) {
        l->record.failed = true;
        return;
    }
    tec_loop_measure_shift(l, &replay, (int)tokens);
    tell_start(l, "copy", replay.start_ns, NULL, 0);
    tell_launch(l, "copy", replay.start_ns, replay.end_ns);
    event.moves = moves;
    event.bytes = tokens * token_bytes(l);
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_KV,
                                        .what = "copy",
                                        .kv = l->ring.chain->ring,
                                        .node = -1,
                                        .request = -1,
                                        .tokens = (int)tokens,
                                        .n = ring->n,
                                        .ring = &event,
                                        .t_ns = tec_loop_now(l)});
}

/* The rows that advance, youngest first; false: the device failed, and nothing was made. */
static bool launch(struct tec_loop *l, const struct tec_frame_input *enters,
                   struct tec_replay *replay, int *tokens)
{
    struct tec_ring_state *ring = &l->ring;
    struct tec_row_state *rows[TEC_MAX_STAGES];
    int made[TEC_MAX_STAGES], n = 0;
    for (int i = ring->n - 1; i >= 0; i--)
        rows[n++] = &ring->items[i].row;
    if (enters) {
        struct tec_ring_launch packed = {.input = tec_chain_input(l, l->ring.chain, enters),
                                         .entering = rows[0],
                                         .rows = rows + 1,
                                         .n = n - 1,
                                         .tokens = tokens,
                                         .replay = *replay};
        l->ring.chain->executor->packed(l->ring.chain->executor->self, &packed);
        *replay = packed.replay;
    } else {
        l->ring.chain->executor->decode(l->ring.chain->executor->self, rows, n, 1, tokens, made,
                                        replay);
    }
    return replay->status == TEC_OK;
}

static void account(struct tec_loop *l, bool enters, const struct tec_replay *r)
{
    int rows = l->ring.n - enters;
    const char *name = enters ? "packed" : "decode";
    struct tec_launch_record *record = tec_loop_note(l, name, r->start_ns, r->end_ns);
    record->rows = record->batch = enters ? rows : l->ring.n;
    l->record.rows += l->ring.n;
    l->record.tokens += l->ring.n;
    if (enters)
        tec_loop_measure_packed(l, r, rows);
    else
        tec_loop_measure_decode(l, tec_chain_index(l, l->ring.chain), r, rows, 1, 1);
}

static bool forward(struct tec_loop *l, const struct tec_frame_input *enters)
{
    struct tec_ring_state *ring = &l->ring;
    struct tec_ring_segment segments[TEC_MAX_STAGES];
    struct tec_replay replay = {0};
    int tokens[TEC_MAX_STAGES];
    const char *name = enters ? "packed" : "decode";
    int n = segments_of(l, enters != NULL, segments);
    if (!launch(l, enters, &replay, tokens)) {
        l->record.failed = true;
        tec_loop_replayed(l, replay.start_ns, replay.end_ns);
        return false;
    }
    tell_gather(l, &replay, segments, n);
    tell_start(l, name, replay.start_ns, segments, n);
    tell_launch(l, name, replay.start_ns, replay.end_ns);
    account(l, enters != NULL, &replay);
    for (int i = 0; i < n; i++) {
        struct tec_ring_item *it = &ring->items[ring->n - 1 - i];
        it->tokens[it->stage++] = tokens[i];
        place(l, it);
    }
    tell_tokens(l, replay.end_ns);
    leave(l);
    if (spec_of(l)->shifts)
        shift(l);
    return !l->record.failed;
}

int tec_ring_depth(const struct tec_loop *l)
{
    const struct tec_topology *t = l->o.topology;
    int deepest = t->n_depth ? t->depth[t->n_depth - 1] : spec_of(l)->stages;
    int depth = l->decision.depth ? tec_snap_down(t->depth, t->n_depth, l->decision.depth) : 0;
    if (depth < 1)
        depth = l->decision.depth && t->n_depth ? t->depth[0] : deepest;
    return depth < spec_of(l)->stages ? depth : spec_of(l)->stages;
}

void tec_ring_run(struct tec_loop *l, const struct tec_frame_input *input)
{
    struct tec_ring_state *ring = &l->ring;
    int depth = tec_ring_depth(l), forwards = tec_stages_forwards(spec_of(l)->stages, depth);
    l->record.depth = depth;
    ring->seen = ring->seen << 1 | (input != NULL);
    ring->broken <<= 1;
    for (int i = 0; i < forwards; i++) {
        bool enters = i == 0 && input;
        ring->forwards_left = forwards - 1 - i;
        if (enters)
            enter(l, input);
        if (ring->n == 0 || !forward(l, enters ? input : NULL))
            break;
    }
    if (l->record.failed)
        ring->n = 0;
    ring->turn++;
    if (!spec_of(l)->shifts && !l->record.failed) {
        struct tec_ring_event event = told();
        event.base = (int)(ring->turn % spec_of(l)->stages);
        tell_kv(l, "rotate", NULL, event, -1);
    }
    l->record.filling = ring->filling;
}

bool tec_ring_missed(struct tec_loop *l, enum tec_cause *cause)
{
    int age = tec_stages_frames(spec_of(l)->stages, tec_ring_depth(l)) - 1;
    uint64_t bit = UINT64_C(1) << age;
    if (l->ring.broken & bit) /* its action would have ended the filling */
        l->ring.filling = l->record.filling = false;
    if (l->record.actions[l->ring.chain->action].release_ns >= 0 || l->ring.filling)
        return false;
    *cause = l->ring.broken & bit ? TEC_CAUSE_MODEL
             : l->ring.seen & bit ? TEC_CAUSE_PLAN
                                  : TEC_CAUSE_INPUT;
    return true;
}
