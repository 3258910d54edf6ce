/* store_kv.c - keeps the KV of a store's segments: versions, pins, tiers and eviction from RAM.
 *
 * KV belongs to a version of a segment and, in a static group, to an epoch of the group; KV of
 * another version or epoch is refused. Pinned KV keeps its bytes: when its segment changes it moves
 * to the list of stale KV and is freed by the last drop. Each tier is a list in order of use, and
 * eviction takes the first that is not pinned. Everything runs under the store's lock except the
 * reading of bytes when KV is brought into RAM. */
#include "graph/memory/store_own.h"

#include <string.h>

static enum tec_status no_form(const char *id, const char *why, struct tec_error *err)
{
    return tec_fail(err, TEC_NOT_FOUND, "memory: KV of segment '%s' %s", id ? id : "(removed)",
                    why);
}

static void list_remove(struct tec_store *s, struct tec_kv *kv, enum tec_kept_in tier)
{
    struct tec_store_list *list = &s->tiers[tier];
    struct tec_store_link *l = &kv->links[tier];
    if (!kv->listed[tier])
        return;
    *(l->prev ? &l->prev->links[tier].next : &list->first) = l->next;
    *(l->next ? &l->next->links[tier].prev : &list->last) = l->prev;
    *l = (struct tec_store_link){NULL, NULL};
    kv->listed[tier] = false;
}

static void list_append(struct tec_store *s, struct tec_kv *kv, enum tec_kept_in tier)
{
    struct tec_store_list *list = &s->tiers[tier];
    list_remove(s, kv, tier);
    kv->links[tier] = (struct tec_store_link){.prev = list->last};
    *(list->last ? &list->last->links[tier].next : &list->first) = kv;
    list->last = kv;
    kv->listed[tier] = true;
}

static int64_t kv_bytes(const struct tec_kv *kv)
{
    return (int64_t)kv->layers * (int64_t)kv->stride;
}

static void ram_free(struct tec_store *s, struct tec_kv *kv)
{
    unsigned char *bytes = atomic_exchange(&kv->bytes, NULL);
    list_remove(s, kv, TEC_KEPT_RAM);
    if (bytes)
        s->counts.ram_bytes -= kv_bytes(kv);
    tec_heap_put(s->heap, bytes);
}

static void kv_free(struct tec_store *s, struct tec_kv *kv)
{
    ram_free(s, kv);
    list_remove(s, kv, TEC_KEPT_FILE);
    tec_heap_put(s->heap, kv);
}

static void stale_remove(struct tec_store *s, struct tec_kv *kv)
{
    struct tec_store_link *l = &kv->links[TEC_KEPT_FILE];
    *(l->prev ? &l->prev->links[TEC_KEPT_FILE].next : &s->stale) = l->next;
    if (l->next)
        l->next->links[TEC_KEPT_FILE].prev = l->prev;
}

void tec_store_kv_leave(struct tec_store *s, struct tec_store_segment *segment)
{
    struct tec_kv *kv = segment->kv;
    segment->kv = NULL;
    if (!kv)
        return;
    kv->current = false;
    if (kv->pins == 0) {
        kv_free(s, kv);
        return;
    }
    list_remove(s, kv, TEC_KEPT_RAM);
    list_remove(s, kv, TEC_KEPT_FILE);
    kv->links[TEC_KEPT_FILE] = (struct tec_store_link){.next = s->stale};
    if (s->stale)
        s->stale->links[TEC_KEPT_FILE].prev = kv;
    s->stale = kv;
}

uint64_t tec_store_epoch(struct tec_store *s, uint32_t handle)
{
    struct tec_group_view group;
    bool joint = tec_groups_of(s->groups, handle, &group) && group.is_static && group.members > 1;
    return joint ? group.epoch : 0;
}

bool tec_store_kv_good(struct tec_store *s, uint32_t handle)
{
    const struct tec_store_segment *u = &s->segments[handle];
    if (!u->kv || u->kv->version != u->version || u->kv->epoch != tec_store_epoch(s, handle))
        return false;
    enum tec_kept_in tier = tec_store_kv_tier(u->kv);
    return tier == TEC_KEPT_REMOTE ? tec_remote_here(s->remote) : tier != TEC_KEPT_PLACES;
}

struct tec_kv *tec_store_kv_new(struct tec_store *s, uint32_t handle, uint64_t epoch)
{
    const struct tec_store_segment *u = &s->segments[handle];
    struct tec_kv *kv = tec_heap_get(s->heap, sizeof *kv);
    if (!kv)
        return NULL;
    kv->serial = ++s->kvs;
    kv->segment = u->segment;
    kv->version = u->version;
    kv->epoch = epoch;
    kv->handle = handle;
    kv->tokens = u->tokens;
    kv->layers = s->options.key.layers;
    kv->stride = tec_log_piece_bytes(&s->options.key, u->tokens);
    return kv;
}

enum tec_status tec_store_kv_found(struct tec_store *s, uint32_t handle, uint64_t epoch,
                                   int64_t place, struct tec_error *err)
{
    struct tec_kv *kv = tec_store_kv_new(s, handle, epoch);
    if (!kv)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for what the file holds");
    tec_store_kv_leave(s, &s->segments[handle]);
    kv->place = place;
    kv->current = true;
    s->segments[handle].kv = kv;
    list_append(s, kv, TEC_KEPT_FILE);
    return TEC_OK;
}

static void tell_eviction(struct tec_store *s, const struct tec_kv *kv, enum tec_kept_in tier)
{
    const struct tec_eviction e = {.tier = tier,
                                   .id = s->segments[kv->handle].id,
                                   .segment = kv->segment,
                                   .version = kv->version,
                                   .epoch = kv->epoch,
                                   .tokens = kv->tokens,
                                   .bytes = atomic_load(&kv->bytes),
                                   .size = kv_bytes(kv)};
    s->counts.evicted[tier]++;
    if (s->options.evict)
        s->options.evict(s->options.user, &e);
}

/* Evict until `bytes` fit in RAM. False if the rest is pinned, or `bytes` exceed the budget. */
static bool ram_room(struct tec_store *s, int64_t bytes)
{
    struct tec_kv *kv = s->tiers[TEC_KEPT_RAM].first;
    if (bytes > s->options.ram_bytes)
        return false;
    while (s->counts.ram_bytes + bytes > s->options.ram_bytes && kv) {
        struct tec_kv *next = kv->links[TEC_KEPT_RAM].next;
        if (kv->pins == 0) {
            tell_eviction(s, kv, TEC_KEPT_RAM);
            if (kv->place == 0 && !atomic_load(&kv->remote))
                tec_store_kv_leave(s, &s->segments[kv->handle]);
            else
                ram_free(s, kv);
        }
        kv = next;
    }
    return s->counts.ram_bytes + bytes <= s->options.ram_bytes;
}

/* Sealed pieces in RAM; NULL where there is no room. */
static unsigned char *ram_take(struct tec_store *s, const struct tec_kv *kv,
                               const void *const *pieces)
{
    if (!ram_room(s, kv_bytes(kv)))
        return NULL;
    unsigned char *all = tec_heap_get(s->heap, (size_t)kv_bytes(kv));
    if (!all)
        return NULL;
    for (uint32_t l = 0; pieces && l < kv->layers; l++) {
        unsigned char *piece = all + (size_t)l * kv->stride;
        memcpy(piece, pieces[l], 2 * tec_log_piece_value(&s->options.key, kv->tokens));
        tec_log_piece_seal(piece, kv->stride, kv->segment, kv->version, l);
    }
    s->counts.ram_bytes += kv_bytes(kv);
    return all;
}

static enum tec_status file_take(struct tec_store *s, struct tec_kv *kv, const void *const *pieces,
                                 struct tec_error *err)
{
    struct tec_log_record r = {.type = TEC_LOG_KV,
                               .segment = kv->segment,
                               .version = kv->version,
                               .epoch = kv->epoch,
                               .tokens = kv->tokens,
                               .pieces = pieces};
    TEC_TRY(tec_store_append(s, &r, err));
    kv->place = r.place;
    if (s->options.sync_each)
        return tec_log_sync(s->log, err);
    return TEC_OK;
}

static void remote_give(struct tec_store *s, struct tec_kv *kv, const void *const *pieces)
{
    const struct tec_remote_ticket ticket = {kv->segment, kv->version, kv->epoch};
    kv->name = tec_store_remote_name(s, kv->handle);
    (void)tec_remote_send(s->remote, &ticket, kv->name, pieces,
                          2 * tec_log_piece_value(&s->options.key, kv->tokens), kv->stride);
}

static enum tec_status put_kv(struct tec_store *s, uint32_t segment, uint64_t version,
                              uint64_t epoch, const void *const *pieces, struct tec_error *err)
{
    struct tec_store_segment *u = segment < s->options.max_segments ? &s->segments[segment] : NULL;
    if (!u || !u->id || u->version != version || tec_store_epoch(s, segment) != epoch)
        return no_form(u ? u->id : NULL, "belongs to another version or group by now", err);
    if (2 * tec_log_piece_value(&s->options.key, u->tokens) > TEC_LOG_MAX_PIECE)
        return tec_fail(err, TEC_INVALID, "memory: segment '%s' has %u tokens, too many", u->id,
                        u->tokens);
    struct tec_kv *kv = tec_store_kv_new(s, segment, epoch);
    if (!kv)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for KV");
    tec_store_kv_leave(s, u); /* of no use any more, and its room may be needed */
    enum tec_status status = s->log ? file_take(s, kv, pieces, err) : TEC_OK;
    unsigned char *bytes = ram_take(s, kv, pieces);
    atomic_store(&kv->bytes, bytes);
    if (s->remote)
        remote_give(s, kv, pieces);
    if (!bytes && kv->place == 0) {
        kv_free(s, kv);
        if (status == TEC_OK)
            status =
                tec_fail(err, TEC_NO_MEMORY,
                         "memory: %lld of %lld bytes of KV in RAM are pinned; segment '%s' is "
                         "not kept",
                         (long long)s->counts.ram_bytes, (long long)s->options.ram_bytes, u->id);
        return status;
    }
    kv->current = true;
    u->kv = kv;
    if (bytes)
        list_append(s, kv, TEC_KEPT_RAM);
    if (kv->place)
        list_append(s, kv, TEC_KEPT_FILE);
    return status;
}

enum tec_status tec_store_put_kv(struct tec_store *s, uint32_t segment, uint64_t version,
                                 uint64_t epoch, const void *const *pieces, struct tec_error *err)
{
    pthread_mutex_lock(&s->lock);
    enum tec_status status = put_kv(s, segment, version, epoch, pieces, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum tec_status tec_store_pin(struct tec_store *s, uint32_t segment, struct tec_kv **out,
                              struct tec_error *err)
{
    enum tec_status status = TEC_OK;
    pthread_mutex_lock(&s->lock);
    const char *id = segment < s->options.max_segments ? s->segments[segment].id : NULL;
    if (!id || !tec_store_kv_good(s, segment)) {
        status = no_form(id, "is not there in the form it should have; compute it", err);
    } else {
        struct tec_kv *kv = s->segments[segment].kv;
        kv->pins++;
        s->counts.loads++;
        for (int t = 0; t < TEC_KEPT_PLACES; t++)
            if (kv->listed[t])
                list_append(s, kv, (enum tec_kept_in)t);
        *out = kv;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

void tec_store_drop(struct tec_store *s, struct tec_kv *kv)
{
    if (!kv)
        return;
    pthread_mutex_lock(&s->lock);
    if (--kv->pins == 0 && !kv->current) {
        stale_remove(s, kv);
        kv_free(s, kv);
    }
    pthread_mutex_unlock(&s->lock);
}

/* All layers of KV into `all`. */
static enum tec_status read_all(struct tec_store *s, struct tec_kv *kv, unsigned char *all,
                                struct tec_error *err)
{
    for (uint32_t l = 0; l < kv->layers; l++)
        TEC_TRY(tec_store_read(s, kv, l, all + (size_t)l * kv->stride, err));
    return TEC_OK;
}

/* Allocate and account RAM for KV; `beyond` allows it to exceed the budget. */
static enum tec_status warm_room(struct tec_store *s, struct tec_kv *kv, bool beyond,
                                 unsigned char **all, struct tec_error *err)
{
    int64_t size = kv_bytes(kv);
    bool room = ram_room(s, size) || beyond;
    *all = room ? tec_heap_get(s->heap, (size_t)size) : NULL;
    if (!*all)
        return tec_fail(err, TEC_NO_MEMORY,
                        "memory: %lld of %lld bytes of KV in RAM are pinned, %lld more are wanted",
                        (long long)s->counts.ram_bytes, (long long)s->options.ram_bytes,
                        (long long)size);
    s->counts.ram_bytes += size;
    return TEC_OK;
}

/* Publish bytes that were read as the KV's copy in RAM, unless the read failed or another thread
 * was faster. */
static void warm_end(struct tec_store *s, struct tec_kv *kv, unsigned char *all, bool good)
{
    if (good && !atomic_load(&kv->bytes)) {
        atomic_store_explicit(&kv->bytes, all, memory_order_release);
        if (kv->current)
            list_append(s, kv, TEC_KEPT_RAM);
        return;
    }
    s->counts.ram_bytes -= kv_bytes(kv);
    tec_heap_put(s->heap, all);
}

/* Also write KV that only the server had to the file. A failure is ignored: RAM holds a copy. */
static void keep_remote(struct tec_store *s, struct tec_kv *kv)
{
    const void *pieces[TEC_MAX_STORE_LAYERS];
    if (!s->log || !kv->current || kv->place != 0 || !atomic_load(&kv->bytes))
        return;
    for (uint32_t l = 0; l < kv->layers; l++)
        pieces[l] = tec_store_kv_piece(kv, l);
    (void)file_take(s, kv, pieces, NULL);
    if (kv->place != 0)
        list_append(s, kv, TEC_KEPT_FILE);
}

enum tec_status tec_store_warm(struct tec_store *s, struct tec_kv *kv, struct tec_error *err)
{
    unsigned char *all = NULL;
    if (tec_store_kv_tier(kv) == TEC_KEPT_RAM)
        return TEC_OK;
    pthread_mutex_lock(&s->lock);
    enum tec_status status = warm_room(s, kv, false, &all, err);
    pthread_mutex_unlock(&s->lock);
    if (status != TEC_OK)
        return status;
    status = read_all(s, kv, all, err); /* not under the lock: a server takes its time */
    pthread_mutex_lock(&s->lock);
    warm_end(s, kv, all, status == TEC_OK);
    if (status == TEC_OK)
        keep_remote(s, kv);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum tec_status tec_store_stale_warm(struct tec_store *s, struct tec_error *err)
{
    for (struct tec_kv *kv = s->stale; kv; kv = kv->links[TEC_KEPT_FILE].next) {
        unsigned char *all = NULL;
        if (tec_store_kv_tier(kv) != TEC_KEPT_FILE)
            continue;
        TEC_TRY(warm_room(s, kv, true, &all, err));
        enum tec_status status = read_all(s, kv, all, err);
        warm_end(s, kv, all, status == TEC_OK);
        TEC_TRY(status);
    }
    return TEC_OK;
}

void tec_store_file_evict(struct tec_store *s, struct tec_kv *kv)
{
    tell_eviction(s, kv, TEC_KEPT_FILE);
    list_remove(s, kv, TEC_KEPT_FILE);
    kv->place = 0;
    if (!atomic_load(&kv->bytes) && !atomic_load(&kv->remote))
        tec_store_kv_leave(s, &s->segments[kv->handle]);
}
