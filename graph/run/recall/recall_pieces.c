/* recall_pieces.c - sends kept pieces to the device, several layers ahead, and lists them for the
 * layer that places them. */
#include "graph/run/recall/recall_pieces.h"

#include "graph/memory/log.h"
#include "graph/run/recall/selections.h"

#include <string.h>

enum tec_status tec_recall_pieces_take(struct tec_recall *r, struct tec_arena *arena,
                                       struct tec_error *err)
{
    size_t segments = (size_t)r->max_segments + 1;
    r->n_rooms = tec_plan_recall_rooms(r->plan);
    r->room = tec_plan_recall_room(r->plan);
    r->lacks = TEC_NEW(arena, segments, bool);
    r->offset = TEC_NEW(arena, segments, size_t);
    r->on = TEC_NEW(arena, segments * (size_t)r->n_rooms, unsigned char *);
    if (!r->lacks || !r->offset || !r->on)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to recall %zu segments", segments);
    if (!r->n_rooms)
        return TEC_OK;
    r->rooms = tec_device_get(r->plan->device, r->room * (size_t)r->n_rooms);
    return r->rooms ? TEC_OK
                    : tec_fail(err, TEC_NO_MEMORY, "kept pieces need %zu bytes on the device",
                               r->room * (size_t)r->n_rooms);
}

void tec_recall_pieces_finish(struct tec_recall *r)
{
    tec_device_put(r->plan->device, r->rooms);
    r->rooms = NULL;
}

static int tokens_of(const struct tec_recall *r, int u)
{
    struct tec_segment_range p = tec_recall_place(r, u);
    return p.end - p.begin;
}

/* Pieces lie in a room as they do in the store: those of neighbours may come in one copy.
 *
 * Of a run that was given up copies may be under way still, from memory that is loaded anew by now.
 * What they bring is never placed: copies run in their order, all of this run's are sent again, and
 * each layer awaits its own. */
void tec_recall_pieces_start(struct tec_recall *r)
{
    const struct tec_log_key key = {.row_bytes = (uint32_t)tec_kv_row_bytes(&r->plan->space.shape)};
    size_t at = 0;
    for (int u = 0; u <= r->in.n_segments; u++) {
        r->offset[u] = at;
        at += tec_log_piece_bytes(&key, (uint32_t)tokens_of(r, u));
    }
    memset(r->on, 0, ((size_t)r->max_segments + 1) * (size_t)r->n_rooms * sizeof(void *));
    r->moves = (struct tec_recall_moves){0};
}

static unsigned char **on_of(const struct tec_recall *r, int layer)
{
    return r->on + (ptrdiff_t)(layer % r->n_rooms) * (r->max_segments + 1);
}

static unsigned char *place_of(const struct tec_recall *r, int layer, int u)
{
    return r->rooms + (size_t)(layer % r->n_rooms) * r->room + r->offset[u];
}

/* A copy that grows while what is to be sent lies side by side on both sides. */
struct span {
    unsigned char *to;
    const unsigned char *from;
    size_t size;
};

static void send(struct tec_recall *r, const struct span *s)
{
    if (!s->size)
        return;
    tec_device_send(r->plan->device, s->to, s->from, s->size);
    r->moves.bytes += (int64_t)s->size;
    r->moves.copies++;
}

static void add(struct tec_recall *r, struct span *s, unsigned char *to, const unsigned char *from,
                size_t size)
{
    size_t ahead = (size_t)to - (size_t)s->to;
    bool side = s->size && (size_t)from - (size_t)s->from == ahead && ahead >= s->size &&
                ahead - s->size <= r->source.behind;
    if (side) {
        s->size = ahead + size;
        return;
    }
    send(r, s);
    *s = (struct span){to, from, size};
}

/* What is needed of a layer and is not on the device yet: sent, all of it or what has come. */
static void send_layer(struct tec_recall *r, int layer, bool all)
{
    const struct tec_recall_source *from = &r->source;
    unsigned char **on = on_of(r, layer);
    struct span span = {0};
    bool any = false;
    for (int u = 0; u <= r->in.n_segments; u++) {
        bool there = false;
        if (!r->lacks[u] || on[u])
            continue;
        unsigned char *to = from->stays ? from->stays(from->self, layer, u, &there) : NULL;
        bool came = all || !from->wait || (from->came && from->came(from->self, layer, u));
        const void *k, *v;
        if (there)
            on[u] = to;
        if (there || !came || !from->find(from->self, layer, u, &k, &v))
            continue;
        size_t bytes = (size_t)tokens_of(r, u) * tec_kv_row_bytes(&r->plan->space.shape);
        on[u] = to ? to : place_of(r, layer, u);
        add(r, &span, on[u], k, bytes);
        add(r, &span, on[u] + bytes, v, bytes);
        any = true;
    }
    send(r, &span);
    if (any)
        tec_device_note(r->plan->device, layer % r->n_rooms);
}

void tec_recall_pieces_begin(struct tec_recall *r, int layer)
{
    bool any = false, whole = true;
    if (!r->rooms)
        return;
    for (int u = 0; u <= r->in.n_segments; u++) {
        any |= r->lacks[u];
        whole &= !r->lacks[u] || on_of(r, layer)[u];
    }
    r->moves.layers += any;
    r->moves.ahead += any && whole;
    if (!whole)
        send_layer(r, layer, false);
}

void tec_recall_pieces_ahead(struct tec_recall *r, int layer)
{
    for (int l = layer + 1; l < r->layers && l < layer + r->n_rooms; l++)
        send_layer(r, l, false);
}

static bool place(struct tec_recall *r, int layer, int u, struct tec_place *to)
{
    struct tec_segment_range p = tec_recall_place(r, u);
    size_t bytes = (size_t)tokens_of(r, u) * tec_kv_row_bytes(&r->plan->space.shape);
    to->tokens = tokens_of(r, u);
    to->slot = r->plan->prefixes.first[r->in.region] + p.begin;
    to->pos = r->in.pos ? r->in.pos[p.begin] : p.begin;
    if (r->rules[tec_recall_group(r, u)].local)
        to->pos = u < r->in.n_segments && r->in.local ? r->in.local[u] : 0;
    if (!r->rooms)
        return r->source.find(r->source.self, layer, u, &to->k, &to->v);
    unsigned char *on = on_of(r, layer)[u];
    to->k = on;
    to->v = on + bytes;
    return on != NULL;
}

enum tec_status tec_recall_pieces_place(struct tec_recall *r, int layer, struct tec_error *err)
{
    struct tec_recall_table *t = &r->part->recall;
    *t->n_places = 0;
    if (r->rooms)
        send_layer(r, layer, true);
    for (int u = 0; u <= r->in.n_segments; u++)
        if (r->lacks[u] && !place(r, layer, u, &t->places[(*t->n_places)++]))
            return tec_fail(err, TEC_NOT_FOUND, "segment %d has no kept keys at layer %d", u,
                            layer);
    if (r->rooms && *t->n_places)
        tec_device_await(r->plan->device, r->part->stream, layer % r->n_rooms);
    return TEC_OK;
}

void tec_recall_pieces_end(struct tec_recall *r, int layer)
{
    for (int u = 0; r->rooms && u <= r->in.n_segments; u++) {
        if (on_of(r, layer)[u] && r->source.placed)
            r->source.placed(r->source.self, layer, u);
        on_of(r, layer)[u] = NULL;
    }
}
