/* memory_tier.c - places of segments on a device, by key and in order of use. */
#include "graph/run/recall/memory_tier.h"

#include <string.h>

struct tec_memory_tier_place {
    struct tec_memory_tier_key key; /* serial 0: of none */
    uint64_t prompt;                /* the last that used it */
    int next;                       /* in its bucket */
    int older, newer;
};

size_t tec_memory_tier_bytes(int layers, size_t piece)
{
    return (size_t)layers * piece;
}

/* Last in order of use. */
static void append(struct tec_memory_tier *t, int place)
{
    struct tec_memory_tier_place *p = &t->places[place];
    p->older = t->newest;
    p->newer = -1;
    *(t->newest >= 0 ? &t->places[t->newest].newer : &t->oldest) = place;
    t->newest = place;
}

static void unlink_use(struct tec_memory_tier *t, int place)
{
    const struct tec_memory_tier_place *p = &t->places[place];
    *(p->older >= 0 ? &t->places[p->older].newer : &t->oldest) = p->newer;
    *(p->newer >= 0 ? &t->places[p->newer].older : &t->newest) = p->older;
}

static void use(struct tec_memory_tier *t, int place)
{
    t->places[place].prompt = t->prompt;
    unlink_use(t, place);
    append(t, place);
}

enum tec_status tec_memory_tier_create(struct tec_memory_tier *t, struct tec_device *device,
                                       int places, int layers, size_t piece,
                                       struct tec_arena *arena, struct tec_error *err)
{
    size_t n = (size_t)places;
    *t = (struct tec_memory_tier){.device = device, .layers = layers, .piece = piece};
    if (!places)
        return TEC_OK;
    for (t->buckets = 1; t->buckets < places;)
        t->buckets *= 2;
    t->places = TEC_NEW(arena, n, struct tec_memory_tier_place);
    t->there = TEC_NEW(arena, n * (size_t)layers, unsigned char);
    t->first = TEC_NEW(arena, (size_t)t->buckets, int);
    if (!t->places || !t->there || !t->first)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d segments on the device", places);
    t->memory = tec_device_get(device, n * tec_memory_tier_bytes(layers, piece));
    TEC_TRY(tec_device_failure(device, err));
    if (!t->memory)
        return tec_fail(err, TEC_NO_MEMORY, "tiers.gpu needs %zu bytes on the device",
                        n * tec_memory_tier_bytes(layers, piece));
    for (int i = 0; i < t->buckets; i++)
        t->first[i] = -1;
    t->oldest = t->newest = -1;
    for (t->n = 0; t->n < places; t->n++)
        append(t, t->n);
    return TEC_OK;
}

void tec_memory_tier_finish(struct tec_memory_tier *t)
{
    if (t->device)
        tec_device_put(t->device, t->memory);
    *t = (struct tec_memory_tier){.device = NULL};
}

static int *bucket_of(const struct tec_memory_tier *t, struct tec_memory_tier_key key)
{
    uint64_t mixed = (key.serial * 0x9e3779b97f4a7c15u) >> 32;
    return &t->first[(mixed + (uint64_t)key.store) & (uint64_t)(t->buckets - 1)];
}

static bool same(struct tec_memory_tier_key a, struct tec_memory_tier_key b)
{
    return a.store == b.store && a.serial == b.serial;
}

void tec_memory_tier_begin(struct tec_memory_tier *t)
{
    t->prompt++;
}

int tec_memory_tier_find(struct tec_memory_tier *t, struct tec_memory_tier_key key)
{
    if (!t->n)
        return -1;
    for (int at = *bucket_of(t, key); at >= 0; at = t->places[at].next)
        if (same(t->places[at].key, key)) {
            use(t, at);
            return at;
        }
    return -1;
}

static void leave_bucket(struct tec_memory_tier *t, int place)
{
    struct tec_memory_tier_place *p = &t->places[place];
    int *link = p->key.serial ? bucket_of(t, p->key) : NULL;
    while (link && *link != place)
        link = &t->places[*link].next;
    if (link)
        *link = p->next;
}

int tec_memory_tier_take(struct tec_memory_tier *t, struct tec_memory_tier_key key)
{
    int at = t->n ? t->oldest : -1;
    if (at < 0 || t->places[at].prompt == t->prompt)
        return -1;
    leave_bucket(t, at);
    int *first = bucket_of(t, key);
    t->places[at].key = key;
    t->places[at].next = *first;
    *first = at;
    memset(t->there + (size_t)at * (size_t)t->layers, 0, (size_t)t->layers);
    use(t, at);
    return at;
}

static size_t index_of(const struct tec_memory_tier *t, int place, int layer)
{
    return (size_t)place * (size_t)t->layers + (size_t)layer;
}

void *tec_memory_tier_at(const struct tec_memory_tier *t, int place, int layer)
{
    return t->memory + index_of(t, place, layer) * t->piece;
}

bool tec_memory_tier_has(const struct tec_memory_tier *t, int place, int layer)
{
    return t->there[index_of(t, place, layer)];
}

void tec_memory_tier_keep(struct tec_memory_tier *t, int place, int layer)
{
    t->there[index_of(t, place, layer)] = 1;
}
