/* store_room.c - room for KV in RAM and in the file: the least recently used leaves, and KV is
 * brought into RAM from another tier.
 *
 * Eviction takes the first of a tier's list that is not pinned. Everything runs under the store's
 * lock, except the reading of bytes (tec_store_read_all), which may wait for a server. */
#include "graph/memory/store_own.h"

static void tell_eviction(struct tec_store *s, const struct tec_kv *kv, enum tec_kept_in tier)
{
    const struct tec_eviction e = {.tier = tier,
                                   .id = s->segments[kv->handle].id,
                                   .segment = kv->segment,
                                   .version = kv->version,
                                   .epoch = kv->epoch,
                                   .tokens = kv->tokens,
                                   .bytes = atomic_load(&kv->bytes),
                                   .size = tec_store_kv_bytes(kv)};
    s->counts.evicted[tier]++;
    if (s->options.evict)
        s->options.evict(s->options.user, &e);
}

bool tec_store_ram_room(struct tec_store *s, int64_t bytes)
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
                tec_store_kv_leave_ram(s, kv);
        }
        kv = next;
    }
    return s->counts.ram_bytes + bytes <= s->options.ram_bytes;
}

void tec_store_file_evict(struct tec_store *s, struct tec_kv *kv)
{
    tell_eviction(s, kv, TEC_KEPT_FILE);
    tec_store_kv_unlist(s, kv, TEC_KEPT_FILE);
    kv->place = 0;
    if (!atomic_load(&kv->bytes) && !atomic_load(&kv->remote))
        tec_store_kv_leave(s, &s->segments[kv->handle]);
}

enum tec_status tec_store_read_all(struct tec_store *s, struct tec_kv *kv, unsigned char *all,
                                   struct tec_error *err)
{
    for (uint32_t l = 0; l < kv->layers; l++)
        TEC_TRY(tec_store_read(s, kv, l, all + (size_t)l * kv->stride, err));
    return TEC_OK;
}

enum tec_status tec_store_warm_begin(struct tec_store *s, const struct tec_kv *kv, bool beyond,
                                     unsigned char **all, struct tec_error *err)
{
    int64_t size = tec_store_kv_bytes(kv);
    bool room = tec_store_ram_room(s, size) || beyond;
    *all = room ? tec_heap_get(s->heap, (size_t)size) : NULL;
    if (!*all)
        return tec_fail(err, TEC_NO_MEMORY,
                        "memory: %lld of %lld bytes of KV in RAM are pinned, %lld more are wanted",
                        (long long)s->counts.ram_bytes, (long long)s->options.ram_bytes,
                        (long long)size);
    s->counts.ram_bytes += size;
    return TEC_OK;
}

void tec_store_warm_end(struct tec_store *s, struct tec_kv *kv, unsigned char *all, bool good)
{
    if (good && !atomic_load(&kv->bytes)) {
        atomic_store_explicit(&kv->bytes, all, memory_order_release);
        if (kv->current)
            tec_store_kv_used(s, kv, TEC_KEPT_RAM);
        return;
    }
    s->counts.ram_bytes -= tec_store_kv_bytes(kv);
    tec_heap_put(s->heap, all);
}

enum tec_status tec_store_stale_warm(struct tec_store *s, struct tec_error *err)
{
    for (struct tec_kv *kv = s->stale; kv; kv = kv->links[TEC_KEPT_FILE].next) {
        unsigned char *all = NULL;
        if (tec_store_kv_tier(kv) != TEC_KEPT_FILE)
            continue;
        TEC_TRY(tec_store_warm_begin(s, kv, true, &all, err));
        enum tec_status status = tec_store_read_all(s, kv, all, err);
        tec_store_warm_end(s, kv, all, status == TEC_OK);
        TEC_TRY(status);
    }
    return TEC_OK;
}
