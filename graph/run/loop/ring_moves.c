/* ring_moves.c - where rows of a ring lie, and keys of one whose slots are its stages.
 *
 * With every forward a sequence that has tokens to come goes a slot on, oldest first, so nothing is
 * overwritten that is still to move; and what requests of the frame stand on is copied, as it does
 * not stay. A device does it inside the forward, layer by layer, and reads the list from the
 * forward's table. Which sequence says its end token is not known then: it moves as well. An
 * executor that only spends time, or takes each step by itself, has a launch behind the forward. */
#include "graph/run/loop/ring_moves.h"
#include "graph/run/loop/measure.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/ring_tell.h"

void tec_ring_place(const struct tec_ring_state *ring, struct tec_ring_item *it)
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

static bool inside(const struct tec_ring_state *ring)
{
    return ring->chain->executor->shifts;
}

bool tec_ring_asked(const struct tec_loop *l, const struct tec_chain *c)
{
    bool asked = false;
    for (int i = 0; i < l->n_live; i++)
        asked |= tec_chain_of(l, &l->requests[i]) == c && !l->requests[i].stored &&
                 (l->sessions < 2 || l->requests[i].session == l->tick->session);
    return asked;
}

/* Add the moves of a ring, before its forward or (`coming` 0) behind it. Returns how many there
 * are then. */
static int list(struct tec_ring_flight *f, const struct tec_ring_state *ring, int coming, int n)
{
    for (int i = 0; i < ring->n; i++) {
        const struct tec_ring_item *it = &ring->items[i];
        int made = it->stage + coming, slot = ring->first + it->slot;
        if (made >= tec_ring_spec(ring)->stages)
            continue;
        f->moves[n] = (struct tec_ring_move){it->slot, it->slot + 1, it->row.prefix + made - 1};
        f->regions[n] = (struct tec_ring_move){slot, slot + 1, f->moves[n].tokens};
        n++;
    }
    return n;
}

/* What has entered lies in the ring's first slot until the next one does. */
static struct tec_ring_move copy_of(const struct tec_ring_state *ring)
{
    return (struct tec_ring_move){ring->first, ring->copy, ring->items[ring->n - 1].row.prefix};
}

int tec_ring_list_moves(struct tec_loop *l, int at)
{
    struct tec_ring_flight *f = &l->flight;
    int n = 0;
    for (int r = 0; r < f->n_rings && inside(f->rings[0]); r++) {
        const struct tec_ring_state *ring = f->rings[r];
        if (at >= ring->forwards)
            continue;
        if (tec_ring_enters(ring, at) && ring->copy >= 0)
            f->regions[n++] = copy_of(ring);
        n = list(f, ring, 1, n);
    }
    return n;
}

/* Tell of moves that the forward has made: its time holds theirs. */
static void tell(const struct tec_loop *l, const struct tec_ring_state *ring, int n)
{
    const struct tec_replay over = {.start_ns = l->flight.end_ns, .end_ns = l->flight.end_ns};
    tec_ring_tell_copy(l, ring, l->flight.moves, n, &over);
}

static bool next_shift(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_ring_state *ring = &l->rings[it->of];
    struct tec_ring_flight *f = &l->flight;
    int n = list(f, ring, 0, 0);
    for (int i = 0; i < ring->n; i++)
        if (ring->items[i].stage < tec_ring_spec(ring)->stages) {
            ring->items[i].slot++;
            ring->items[i].region++;
            tec_ring_place(ring, &ring->items[i]);
        }
    if (n > 0 && inside(ring))
        tell(l, ring, n);
    *it->launch =
        (struct tec_launch){.kind = TEC_LAUNCH_shift, .shift = {.moves = f->regions, .n = n}};
    return n > 0 && !inside(ring);
}

/* A copy of the sequence that has just entered, if a request of this frame is to stand on it. */
static bool next_copy(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_ring_state *ring = &l->rings[it->of];
    if (ring->copy < 0)
        return false;
    l->flight.moves[0] = copy_of(ring);
    if (inside(ring))
        tell(l, ring, 1);
    *it->launch =
        (struct tec_launch){.kind = TEC_LAUNCH_shift, .shift = {.moves = l->flight.moves, .n = 1}};
    return !inside(ring);
}

static void settle_moves(struct tec_loop *l, struct tec_scheduled *it)
{
    const struct tec_launch *launch = it->launch;
    const struct tec_ring_state *ring = &l->rings[it->of];
    int tokens = 0;
    for (int i = 0; i < launch->shift.n; i++)
        tokens += launch->shift.moves[i].tokens;
    tec_loop_measure_ring(l, ring, TEC_COST_SHIFT, &launch->replay, tokens);
    tec_ring_tell_copy(l, ring, l->flight.moves, launch->shift.n, &launch->replay);
}

const struct tec_scheduled_kind tec_scheduled_shift = {
    .next = next_shift, .settle = settle_moves, .once = true};
const struct tec_scheduled_kind tec_scheduled_copy = {
    .next = next_copy, .settle = settle_moves, .once = true};

void tec_ring_add_told(struct tec_loop *l, const struct tec_ring_state *ring, bool enters)
{
    int of = (int)(ring - l->rings);
    if (!tec_ring_spec(ring)->shifts)
        return;
    if (enters)
        tec_schedule_add(l, &tec_scheduled_copy, ring->chain, ring->who, of);
    if (inside(ring))
        tec_schedule_add(l, &tec_scheduled_shift, ring->chain, ring->who, of);
}

void tec_ring_add_shift(struct tec_loop *l, const struct tec_ring_state *ring)
{
    if (tec_ring_spec(ring)->shifts && !inside(ring))
        tec_schedule_add(l, &tec_scheduled_shift, ring->chain, ring->who, (int)(ring - l->rings));
}
