/* store_units.c - the table of a store's units: handles, names and serial numbers.
 *
 * Every function runs under the store's lock or takes it. Handles are indices of a fixed array, so
 * they stay valid while a unit lives; serial numbers are never used twice and name a unit in the
 * file. Two chained hash tables lead from name and from serial number to the handle. They are
 * seeded by an address, so that no client can choose names that meet in one chain. */
#include "graph/memory/store_own.h"

#include <string.h>
#include <xxhash.h>

/* The address is a seed: nobody outside can make names meet in one chain. */
static uint32_t *id_bucket(const struct tec_store *s, const char *id, size_t bytes)
{
    return &s->by_id[XXH3_64bits_withSeed(id, bytes, (uint64_t)(uintptr_t)s) % s->buckets];
}

static uint32_t *unit_bucket(const struct tec_store *s, uint64_t unit)
{
    return &s->by_unit[XXH3_64bits_withSeed(&unit, sizeof unit, (uint64_t)(uintptr_t)s) %
                       s->buckets];
}

uint32_t tec_store_serial(const struct tec_store *s, uint64_t unit)
{
    uint32_t at = *unit_bucket(s, unit);
    while (at != TEC_NO_UNIT && s->units[at].unit != unit)
        at = s->units[at].next_unit;
    return at;
}

uint32_t tec_store_name(const struct tec_store *s, const char *id, size_t id_bytes)
{
    uint32_t at = *id_bucket(s, id, id_bytes);
    while (at != TEC_NO_UNIT &&
           (strlen(s->units[at].id) != id_bytes || memcmp(s->units[at].id, id, id_bytes) != 0))
        at = s->units[at].next_id;
    return at;
}

enum tec_status tec_store_unit_take(struct tec_store *s, uint64_t unit, const char *id,
                                    size_t id_bytes, uint32_t *handle, struct tec_error *err)
{
    if (s->free == TEC_NO_UNIT)
        return tec_fail(err, TEC_NO_MEMORY, "memory: there is room for %u units, and as many are",
                        s->options.max_units);
    char *name = tec_heap_get(s->heap, id_bytes + 1);
    if (!name)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for the name of a unit");
    memcpy(name, id, id_bytes);
    uint32_t at = s->free, *ids = id_bucket(s, id, id_bytes), *units = unit_bucket(s, unit);
    s->free = s->units[at].next_id;
    s->units[at] =
        (struct tec_store_unit){.id = name, .unit = unit, .next_id = *ids, .next_unit = *units};
    *ids = *units = at;
    if (unit >= s->next_unit)
        s->next_unit = unit + 1;
    s->counts.units++;
    *handle = at;
    return TEC_OK;
}

char *tec_store_text_copy(struct tec_store *s, const char *text, size_t bytes)
{
    char *copy = tec_heap_get(s->heap, bytes + 1);
    if (copy && bytes > 0)
        memcpy(copy, text, bytes);
    return copy;
}

void tec_store_text_set(struct tec_store *s, uint32_t handle, char *copy, size_t bytes,
                        uint32_t tokens, uint64_t version)
{
    struct tec_store_unit *u = &s->units[handle];
    XXH128_hash_t hash = XXH3_128bits(copy, bytes);
    tec_heap_put(s->heap, u->text);
    u->text = copy;
    u->text_bytes = bytes;
    u->tokens = tokens;
    u->version = version;
    u->hash = (struct tec_text_hash){hash.low64, hash.high64};
}

/* Take `handle` out of a chain that begins at *at and goes on by one of the two fields. */
static void unchain(struct tec_store *s, uint32_t *at, uint32_t handle, size_t field)
{
    while (*at != handle)
        at = (uint32_t *)(void *)((char *)&s->units[*at] + field);
    *at = *(uint32_t *)(void *)((char *)&s->units[handle] + field);
}

void tec_store_unit_free(struct tec_store *s, uint32_t handle)
{
    struct tec_store_unit *u = &s->units[handle];
    tec_store_kv_leave(s, u);
    unchain(s, id_bucket(s, u->id, strlen(u->id)), handle,
            offsetof(struct tec_store_unit, next_id));
    unchain(s, unit_bucket(s, u->unit), handle, offsetof(struct tec_store_unit, next_unit));
    tec_heap_put(s->heap, u->id);
    tec_heap_put(s->heap, u->text);
    *u = (struct tec_store_unit){.next_id = s->free};
    s->free = handle;
    s->counts.units--;
}

bool tec_store_view(struct tec_store *s, uint32_t unit, struct tec_unit_view *out)
{
    pthread_mutex_lock(&s->lock);
    bool there = unit < s->options.max_units && s->units[unit].id != NULL;
    if (there) {
        const struct tec_store_unit *u = &s->units[unit];
        bool good = tec_store_kv_good(s, unit);
        *out = (struct tec_unit_view){.id = u->id,
                                      .text = u->text,
                                      .text_bytes = u->text_bytes,
                                      .unit = u->unit,
                                      .version = u->version,
                                      .epoch = tec_store_epoch(s, unit),
                                      .tokens = u->tokens,
                                      .has_kv = good,
                                      .in_ram = good && atomic_load(&u->kv->bytes) != NULL};
    }
    pthread_mutex_unlock(&s->lock);
    return there;
}
