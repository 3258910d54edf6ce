/* store_segments.c - the table of a store's segments: handles, names and serial numbers.
 *
 * Every function runs under the store's lock or takes it. Handles are indices of a fixed array, so
 * they stay valid while a segment lives; serial numbers are never used twice and name a segment in
 * the file. Two chained hash tables lead from name and from serial number to the handle. They are
 * seeded by an address, so that no client can choose names that meet in one chain. A third one
 * leads from a text to the segments that have it. */
#include "graph/memory/store_own.h"

#include <string.h>
#include <xxhash.h>

/* The address is a seed: nobody outside can make names meet in one chain. */
static uint32_t *id_bucket(const struct tec_store *s, const char *id, size_t bytes)
{
    return &s->by_id[XXH3_64bits_withSeed(id, bytes, (uint64_t)(uintptr_t)s) % s->buckets];
}

static uint32_t *segment_bucket(const struct tec_store *s, uint64_t segment)
{
    return &s->by_segment[XXH3_64bits_withSeed(&segment, sizeof segment, (uint64_t)(uintptr_t)s) %
                          s->buckets];
}

static uint32_t *text_bucket(const struct tec_store *s, const struct tec_text_hash *hash)
{
    return &s->by_text[XXH3_64bits_withSeed(hash, sizeof *hash, (uint64_t)(uintptr_t)s) %
                       s->buckets];
}

uint32_t tec_store_texts(const struct tec_store *s, const struct tec_text_hash *hash)
{
    return *text_bucket(s, hash);
}

/* Many segments may have one text, so the chain is left in one step. */
static void text_leave(struct tec_store *s, const struct tec_store_segment *u)
{
    if (!u->text)
        return;
    if (u->prev_text != TEC_NO_SEGMENT)
        s->segments[u->prev_text].next_text = u->next_text;
    else
        *text_bucket(s, &u->hash) = u->next_text;
    if (u->next_text != TEC_NO_SEGMENT)
        s->segments[u->next_text].prev_text = u->prev_text;
}

static void text_join(struct tec_store *s, uint32_t handle)
{
    struct tec_store_segment *u = &s->segments[handle];
    uint32_t *first = text_bucket(s, &u->hash);
    u->prev_text = TEC_NO_SEGMENT;
    u->next_text = *first;
    if (*first != TEC_NO_SEGMENT)
        s->segments[*first].prev_text = handle;
    *first = handle;
}

uint32_t tec_store_serial(const struct tec_store *s, uint64_t segment)
{
    uint32_t at = *segment_bucket(s, segment);
    while (at != TEC_NO_SEGMENT && s->segments[at].segment != segment)
        at = s->segments[at].next_segment;
    return at;
}

uint32_t tec_store_name(const struct tec_store *s, const char *id, size_t id_bytes)
{
    uint32_t at = *id_bucket(s, id, id_bytes);
    while (at != TEC_NO_SEGMENT && (strlen(s->segments[at].id) != id_bytes ||
                                    memcmp(s->segments[at].id, id, id_bytes) != 0))
        at = s->segments[at].next_id;
    return at;
}

enum tec_status tec_store_segment_take(struct tec_store *s, uint64_t segment, const char *id,
                                       size_t id_bytes, uint32_t *handle, struct tec_error *err)
{
    if (s->free == TEC_NO_SEGMENT)
        return tec_fail(err, TEC_NO_MEMORY,
                        "memory: there is room for %u segments, and as many are",
                        s->options.max_segments);
    char *name = tec_heap_get(s->heap, id_bytes + 1);
    if (!name)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for the name of a segment");
    memcpy(name, id, id_bytes);
    uint32_t at = s->free, *ids = id_bucket(s, id, id_bytes),
             *segments = segment_bucket(s, segment);
    s->free = s->segments[at].next_id;
    s->segments[at] = (struct tec_store_segment){
        .id = name, .segment = segment, .next_id = *ids, .next_segment = *segments};
    *ids = *segments = at;
    if (segment >= s->next_segment)
        s->next_segment = segment + 1;
    s->counts.segments++;
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
    struct tec_store_segment *u = &s->segments[handle];
    XXH128_hash_t hash = XXH3_128bits(copy, bytes);
    text_leave(s, u);
    tec_heap_put(s->heap, u->text);
    u->text = copy;
    u->text_bytes = bytes;
    u->tokens = tokens;
    u->version = version;
    u->hash = (struct tec_text_hash){hash.low64, hash.high64};
    text_join(s, handle);
}

/* Take `handle` out of a chain that begins at *at and goes on by one of the two fields. */
static void unchain(struct tec_store *s, uint32_t *at, uint32_t handle, size_t field)
{
    while (*at != handle)
        at = (uint32_t *)(void *)((char *)&s->segments[*at] + field);
    *at = *(uint32_t *)(void *)((char *)&s->segments[handle] + field);
}

void tec_store_segment_free(struct tec_store *s, uint32_t handle)
{
    struct tec_store_segment *u = &s->segments[handle];
    tec_store_kv_leave(s, u);
    unchain(s, id_bucket(s, u->id, strlen(u->id)), handle,
            offsetof(struct tec_store_segment, next_id));
    unchain(s, segment_bucket(s, u->segment), handle,
            offsetof(struct tec_store_segment, next_segment));
    text_leave(s, u);
    tec_heap_put(s->heap, u->id);
    tec_heap_put(s->heap, u->text);
    *u = (struct tec_store_segment){.next_id = s->free};
    s->free = handle;
    s->counts.segments--;
}

bool tec_store_view(struct tec_store *s, uint32_t segment, struct tec_store_segment_view *out)
{
    pthread_mutex_lock(&s->lock);
    bool there = segment < s->options.max_segments && s->segments[segment].id != NULL;
    if (there) {
        const struct tec_store_segment *u = &s->segments[segment];
        bool good = tec_store_kv_good(s, segment);
        *out =
            (struct tec_store_segment_view){.id = u->id,
                                            .text = u->text,
                                            .text_bytes = u->text_bytes,
                                            .segment = u->segment,
                                            .version = u->version,
                                            .epoch = tec_store_epoch(s, segment),
                                            .tokens = u->tokens,
                                            .has_kv = good,
                                            .in_ram = good && atomic_load(&u->kv->bytes) != NULL};
    }
    pthread_mutex_unlock(&s->lock);
    return there;
}
