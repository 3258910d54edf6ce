/* ring_tell.c - what rings tell: their forwards, and what becomes of their keys and values. */
#include "graph/run/loop/ring_tell.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/tell.h"

static int64_t token_bytes(const struct tec_ring_state *ring)
{
    return tec_kv_token_bytes(&ring->chain->plan->space.shape);
}

void tec_ring_tell_kv(const struct tec_loop *l, const struct tec_ring_state *ring,
                      struct tec_event event, struct tec_ring_event more)
{
    event.kind = TEC_EVENT_KV;
    event.kv = ring->name;
    event.node = -1;
    event.ring = &more;
    tec_loop_tell(l, event);
}

void tec_ring_tell_item(const struct tec_loop *l, const struct tec_ring_state *ring,
                        const char *what, const struct tec_ring_item *it)
{
    struct tec_ring_event more = tec_ring_event();
    more.slot = it->slot;
    tec_ring_tell_kv(l, ring,
                     (struct tec_event){.what = what,
                                        .request = it->id,
                                        .tokens = tec_ring_stored(it),
                                        .t_ns = tec_loop_now(l)},
                     more);
}

static void tell_run(const struct tec_loop *l, const char *what, int64_t start, int64_t end,
                     const struct tec_ring_segment *segments, int n)
{
    struct tec_ring_event ring = tec_ring_event();
    int rows = 0;
    for (int i = 0; i < n; i++)
        rows += segments[i].rows;
    ring.segments = segments;
    tec_loop_tell_run(
        l,
        (struct tec_event){
            .what = what, .node = -1, .request = -1, .rows = rows, .n = n, .ring = &ring},
        start, end);
}

void tec_ring_tell_copy(const struct tec_loop *l, const struct tec_ring_state *ring,
                        const struct tec_ring_move *moves, int n, const struct tec_replay *r)
{
    struct tec_ring_event more = tec_ring_event();
    int64_t tokens = 0;
    for (int i = 0; i < n; i++)
        tokens += moves[i].tokens;
    tell_run(l, "copy", r->start_ns, r->end_ns, NULL, 0);
    more.moves = moves;
    more.bytes = tokens * token_bytes(ring);
    tec_ring_tell_kv(
        l, ring,
        (struct tec_event){
            .what = "copy", .request = -1, .tokens = (int)tokens, .n = n, .t_ns = tec_loop_now(l)},
        more);
}

/* On a device the copies are made inside the forward, layer by layer, and its time holds theirs:
 * the mark, where they began, is then its start. */
static void tell_gather(const struct tec_loop *l, const struct tec_ring_state *ring,
                        const struct tec_replay *r, const struct tec_ring_segment *segments, int n)
{
    struct tec_ring_event more = tec_ring_event();
    int64_t tokens = 0;
    if (!tec_ring_spec(ring)->gathers)
        return;
    for (int i = 0; i < n; i++)
        tokens += segments[i].visible;
    more.bytes = tokens * token_bytes(ring);
    tell_run(l, "gather", r->mark_ns[TEC_MARK_SHIFT], r->start_ns, NULL, 0);
    tec_ring_tell_kv(
        l, ring,
        (struct tec_event){
            .what = "gather", .request = -1, .tokens = (int)tokens, .t_ns = r->start_ns},
        more);
}

/* Keys that a row of the forward sees. */
static struct tec_ring_segment segment_of(const struct tec_loop *l, const struct tec_ring_flight *f,
                                          int i)
{
    const struct tec_ring_item *it = f->item[i];
    bool whole = i < f->entering;
    return (struct tec_ring_segment){.ring = tec_ring_index(l, f->ring[i]),
                                     .session = tec_ring_session(l, f->ring[i]),
                                     .request = it->id,
                                     .stage = it->stage,
                                     .slot = it->slot,
                                     .rows = whole ? it->row.prefix : 1,
                                     .pos = whole ? 0 : it->row.prefix + it->stage - 1,
                                     .visible = it->row.prefix + it->stage};
}

void tec_ring_tell_forward(const struct tec_loop *l, const struct tec_ring_flight *f,
                           const struct tec_replay *r)
{
    struct tec_ring_segment segments[TEC_MAX_STAGES];
    const char *name = f->entering ? f->by->packed : f->by->alone;
    for (int i = 0; i < f->n; i++)
        segments[i] = segment_of(l, f, i);
    tell_gather(l, f->by, r, segments, f->n);
    tell_run(l, name, r->start_ns, r->end_ns, segments, f->n);
}

void tec_ring_tell_tokens(const struct tec_loop *l, const struct tec_ring_flight *f, int64_t at_ns)
{
    struct tec_ring_event ring = tec_ring_event();
    int64_t ids[TEC_MAX_STAGES];
    int done[TEC_MAX_STAGES], of[TEC_MAX_STAGES], sessions[TEC_MAX_STAGES];
    for (int i = 0; i < f->n; i++) {
        ids[i] = f->item[i]->id;
        done[i] = f->item[i]->stage;
        of[i] = tec_ring_index(l, f->ring[i]);
        sessions[i] = tec_ring_session(l, f->ring[i]);
    }
    ring.done = done;
    ring.of = of;
    ring.sessions = sessions;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_TOKENS,
                                        .node = -1,
                                        .request = -1,
                                        .requests = ids,
                                        .n = f->n,
                                        .ring = &ring,
                                        .t_ns = at_ns});
}
