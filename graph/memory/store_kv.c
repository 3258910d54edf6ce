/* store_kv.c - the KV of a store's segments: which version and form it is of, which tiers have it,
 * and its end.
 *
 * KV belongs to a version of a segment and, in a static group, to an epoch of the group; KV of
 * another version or epoch is of no use. Pinned KV keeps its bytes: when its segment changes it
 * moves to the list of stale KV and is freed by the last drop. Each tier is a list in order of use.
 * Everything runs under the store's lock, except what is asked of KV that is pinned, and
 * tec_store_kv_damaged, which a reader may call without it. */
#include "graph/memory/store_own.h"

uint64_t tec_store_kv_serial(const struct tec_kv *kv)
{
    return kv->serial;
}

uint32_t tec_store_kv_tokens(const struct tec_kv *kv)
{
    return kv->tokens;
}

size_t tec_store_kv_piece_bytes(const struct tec_kv *kv)
{
    return kv->stride;
}

const unsigned char *tec_store_kv_piece(const struct tec_kv *kv, uint32_t layer)
{
    const unsigned char *bytes =
        atomic_load_explicit(&((struct tec_kv *)(uintptr_t)kv)->bytes, memory_order_acquire);
    return bytes && layer < kv->layers ? bytes + (size_t)layer * kv->stride : NULL;
}

enum tec_kept_in tec_store_kv_tier(const struct tec_kv *kv)
{
    struct tec_kv *k = (struct tec_kv *)(uintptr_t)kv; /* atomics are read */
    if (atomic_load_explicit(&k->bytes, memory_order_acquire))
        return TEC_KEPT_RAM;
    if (atomic_load(&k->place) != 0 && !atomic_load(&k->damaged))
        return TEC_KEPT_FILE;
    return atomic_load(&k->remote) ? TEC_KEPT_REMOTE : TEC_KEPT_PLACES;
}

void tec_store_kv_unlist(struct tec_store *s, struct tec_kv *kv, enum tec_kept_in tier)
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

void tec_store_kv_used(struct tec_store *s, struct tec_kv *kv, enum tec_kept_in tier)
{
    struct tec_store_list *list = &s->tiers[tier];
    tec_store_kv_unlist(s, kv, tier);
    kv->links[tier] = (struct tec_store_link){.prev = list->last};
    *(list->last ? &list->last->links[tier].next : &list->first) = kv;
    list->last = kv;
    kv->listed[tier] = true;
}

void tec_store_kv_leave_ram(struct tec_store *s, struct tec_kv *kv)
{
    unsigned char *bytes = atomic_exchange(&kv->bytes, NULL);
    tec_store_kv_unlist(s, kv, TEC_KEPT_RAM);
    if (bytes)
        s->counts.ram_bytes -= tec_store_kv_bytes(kv);
    tec_heap_put(s->heap, bytes);
}

void tec_store_kv_free(struct tec_store *s, struct tec_kv *kv)
{
    tec_store_kv_leave_ram(s, kv);
    tec_store_kv_unlist(s, kv, TEC_KEPT_FILE);
    tec_heap_put(s->heap, kv);
}

void tec_store_kv_leave(struct tec_store *s, struct tec_store_segment *segment)
{
    struct tec_kv *kv = segment->kv;
    segment->kv = NULL;
    if (!kv)
        return;
    kv->current = false;
    if (kv->pins == 0) {
        tec_store_kv_free(s, kv);
        return;
    }
    tec_store_kv_unlist(s, kv, TEC_KEPT_RAM);
    tec_store_kv_unlist(s, kv, TEC_KEPT_FILE);
    kv->links[TEC_KEPT_FILE] = (struct tec_store_link){.next = s->stale};
    if (s->stale)
        s->stale->links[TEC_KEPT_FILE].prev = kv;
    s->stale = kv;
}

void tec_store_kv_end(struct tec_store *s, struct tec_kv *kv)
{
    struct tec_store_link *l = &kv->links[TEC_KEPT_FILE];
    *(l->prev ? &l->prev->links[TEC_KEPT_FILE].next : &s->stale) = l->next;
    if (l->next)
        l->next->links[TEC_KEPT_FILE].prev = l->prev;
    tec_store_kv_free(s, kv);
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
    tec_store_kv_used(s, kv, TEC_KEPT_FILE);
    return TEC_OK;
}

void tec_store_kv_damaged(struct tec_store *s, struct tec_kv *kv, uint32_t layer, bool reading)
{
    if (atomic_exchange(&kv->damaged, true))
        return;
    const struct tec_log_damage d = {.offset = kv->place + (int64_t)layer * (int64_t)kv->stride,
                                     .bytes = (int64_t)kv->stride,
                                     .segment = kv->segment,
                                     .type = TEC_LOG_KV,
                                     .what = "keys and values are damaged",
                                     .reading = reading};
    atomic_fetch_add(&s->damages, 1);
    if (s->options.damage)
        s->options.damage(s->options.user, &d);
}
