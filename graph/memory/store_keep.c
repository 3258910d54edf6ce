/* store_keep.c - KV that is handed in, held while it is read, and given back.
 *
 * What is handed in goes to the file, to RAM as far as there is room, and to the server; KV of a
 * version or epoch that its segment no longer has is refused. Everything runs under the store's
 * lock except the reading of bytes when KV is brought into RAM. */
#include "graph/memory/store_own.h"

#include <string.h>

static enum tec_status no_form(const char *id, const char *why, struct tec_error *err)
{
    return tec_fail(err, TEC_NOT_FOUND, "memory: KV of segment '%s' %s", id ? id : "(removed)",
                    why);
}

/* Sealed pieces in RAM; NULL where there is no room. */
static unsigned char *ram_take(struct tec_store *s, const struct tec_kv *kv,
                               const void *const *pieces)
{
    if (!tec_store_ram_room(s, tec_store_kv_bytes(kv)))
        return NULL;
    unsigned char *all = tec_heap_get(s->heap, (size_t)tec_store_kv_bytes(kv));
    if (!all)
        return NULL;
    for (uint32_t l = 0; pieces && l < kv->layers; l++) {
        unsigned char *piece = all + (size_t)l * kv->stride;
        memcpy(piece, pieces[l], 2 * tec_log_piece_value(&s->options.key, kv->tokens));
        tec_log_piece_seal(piece, kv->stride, kv->segment, kv->version, l);
    }
    s->counts.ram_bytes += tec_store_kv_bytes(kv);
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
        tec_store_kv_free(s, kv);
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
        tec_store_kv_used(s, kv, TEC_KEPT_RAM);
    if (kv->place)
        tec_store_kv_used(s, kv, TEC_KEPT_FILE);
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
                tec_store_kv_used(s, kv, (enum tec_kept_in)t);
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
    if (--kv->pins == 0 && !kv->current)
        tec_store_kv_end(s, kv);
    pthread_mutex_unlock(&s->lock);
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
        tec_store_kv_used(s, kv, TEC_KEPT_FILE);
}

enum tec_status tec_store_warm(struct tec_store *s, struct tec_kv *kv, struct tec_error *err)
{
    unsigned char *all = NULL;
    if (tec_store_kv_tier(kv) == TEC_KEPT_RAM)
        return TEC_OK;
    pthread_mutex_lock(&s->lock);
    enum tec_status status = tec_store_warm_begin(s, kv, false, &all, err);
    pthread_mutex_unlock(&s->lock);
    if (status != TEC_OK)
        return status;
    status = tec_store_read_all(s, kv, all, err); /* not under the lock: a server takes its time */
    pthread_mutex_lock(&s->lock);
    tec_store_warm_end(s, kv, all, status == TEC_OK);
    if (status == TEC_OK)
        keep_remote(s, kv);
    pthread_mutex_unlock(&s->lock);
    return status;
}
