/* store_read.c - reads KV from the fastest tier that still holds it whole: RAM, the file, the
 * server.
 *
 * Runs on any thread that has pinned the KV, without the store's lock; a read lock keeps the file
 * from being replaced during a read. A tier that fails or gives a wrong checksum is not asked again
 * for this KV, and the next one is tried from the first byte. A piece from the server carries the
 * checksum of its shared name and gets the store's own on arrival. */
#include "graph/memory/log_own.h"
#include "graph/memory/store_own.h"

#include <stdio.h>
#include <string.h>

static enum tec_status file_part(struct tec_store *s, struct tec_kv *kv, uint32_t layer,
                                 size_t from, size_t to, unsigned char *piece,
                                 struct tec_error *err)
{
    pthread_rwlock_rdlock(&s->files);
    int64_t at = kv->place + (int64_t)layer * (int64_t)kv->stride + (int64_t)from;
    enum tec_status status = TEC_NOT_FOUND; /* it has moved to RAM meanwhile */
    if (kv->place != 0)
        status = tec_log_pread(s->log, piece + from, to - from, at, err);
    pthread_rwlock_unlock(&s->files);
    if (status == TEC_OK)
        tec_log_throttle(s->log, to - from);
    return status;
}

static enum tec_status part_read(struct tec_store *s, struct tec_kv *kv, uint32_t layer,
                                 enum tec_kept_in tier, size_t from, size_t to,
                                 unsigned char *piece, int64_t until_ns, struct tec_error *err)
{
    const unsigned char *there = tec_store_kv_piece(kv, layer);
    if (tier == TEC_KEPT_RAM && there)
        memcpy(piece + from, there + from, to - from);
    else if (tier == TEC_KEPT_FILE)
        return file_part(s, kv, layer, from, to, piece, err);
    else if (tier == TEC_KEPT_REMOTE)
        return tec_remote_read(s->remote, kv->name, (size_t)layer * kv->stride + from, to - from,
                               piece + from, until_ns, err);
    return TEC_OK;
}

/* Verify a whole piece whose end came from `tier`; a piece from the server is resealed with the
 * store's own checksum. */
static bool whole(struct tec_kv *kv, uint32_t layer, enum tec_kept_in tier, unsigned char *piece)
{
    if (tier != TEC_KEPT_REMOTE)
        return tec_log_piece_whole(piece, kv->stride, kv->segment, kv->version, layer);
    if (!tec_log_piece_whole(piece, kv->stride, kv->name.low, kv->name.high, layer))
        return false;
    tec_log_piece_seal(piece, kv->stride, kv->segment, kv->version, layer);
    return true;
}

static enum tec_status no_whole(struct tec_store *s, struct tec_kv *kv, uint32_t layer,
                                enum tec_kept_in tier, struct tec_error *err)
{
    char place[48] = "";
    const char *where = tier == TEC_KEPT_FILE ? tec_log_path(s->log) : s->options.remote.address;
    int64_t at = kv->place + (int64_t)layer * (int64_t)kv->stride;
    if (tier == TEC_KEPT_FILE)
        snprintf(place, sizeof place, ", at byte %lld", (long long)at);
    return tec_fail(err, TEC_MALFORMED,
                    "%.120s: KV of segment %llu, version %llu, layer %u is damaged%s", where,
                    (unsigned long long)kv->segment, (unsigned long long)kv->version, layer, place);
}

/* A tier could not deliver the piece: do not ask it for this KV again. */
static void give_up(struct tec_store *s, struct tec_kv *kv, uint32_t layer, enum tec_kept_in tier,
                    enum tec_status why)
{
    if (tier == TEC_KEPT_FILE)
        tec_store_kv_damaged(s, kv, layer, true);
    if (tier == TEC_KEPT_REMOTE)
        atomic_store(&kv->remote, false);
    if (tier == TEC_KEPT_REMOTE && why != TEC_IO)
        atomic_store(&kv->shunned, true);
}

enum tec_status tec_store_read_part(struct tec_store *s, struct tec_kv *kv, uint32_t layer,
                                    size_t from, size_t to, unsigned char *piece, int64_t until_ns,
                                    enum tec_kept_in *tier, struct tec_error *err)
{
    enum tec_status status = TEC_NOT_FOUND;
    if (layer >= kv->layers || from > to || to > kv->stride)
        return tec_fail(err, TEC_INVALID, "memory: KV %zu .. %zu of layer %u of %u", from, to,
                        layer, kv->layers);
    for (;;) {
        enum tec_kept_in t = tec_store_kv_tier(kv);
        if (t == TEC_KEPT_PLACES)
            return status != TEC_NOT_FOUND
                       ? status
                       : tec_fail(err, status, "memory: KV of segment %llu is in no tier any more",
                                  (unsigned long long)kv->segment);
        bool moved = false, sure = to < kv->stride || (t == TEC_KEPT_RAM && from == 0);
        status = part_read(s, kv, layer, t, from, to, piece, until_ns, err);
        if (status == TEC_OK && !sure && !whole(kv, layer, t, piece)) {
            moved = from > 0; /* perhaps the parts before, from elsewhere, are to blame */
            status = no_whole(s, kv, layer, t, err);
            if (t == TEC_KEPT_REMOTE && !moved)
                tec_remote_bad(s->remote);
        }
        if (status == TEC_OK) {
            atomic_fetch_add(&s->read_bytes[t], (int64_t)(to - from));
            if (tier)
                *tier = t;
            return TEC_OK;
        }
        if (!moved && tec_store_kv_tier(kv) == t)
            give_up(s, kv, layer, t, status);
        from = 0;
    }
}

enum tec_status tec_store_read(struct tec_store *s, struct tec_kv *kv, uint32_t layer, void *piece,
                               struct tec_error *err)
{
    return tec_store_read_part(s, kv, layer, 0, kv->stride, piece, INT64_MAX, NULL, err);
}
