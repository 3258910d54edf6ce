/* store_share.c - takes over from another store what that has kept of the same texts.
 *
 * Stores of one model keep equal keys and values of equal texts, so they need be computed once. A
 * name that depends on the texts alone says which are equal: that of the server's strings. One
 * store is locked at a time, and none while bytes are read, so two stores may take from each other.
 */
#include "graph/memory/store_own.h"

enum { LOOKS = 16 }; /* segments with one text that are looked at */

/* What a segment should have, when it was asked. */
struct wanted {
    uint64_t version, epoch;
    struct tec_text_hash text;
    struct tec_remote_name name;
};

static bool wants(struct tec_store *s, uint32_t segment, struct wanted *w)
{
    pthread_mutex_lock(&s->lock);
    bool is = segment < s->options.max_segments && s->segments[segment].id &&
              !tec_store_kv_good(s, segment);
    if (is)
        *w = (struct wanted){.version = s->segments[segment].version,
                             .epoch = tec_store_epoch(s, segment),
                             .text = s->segments[segment].hash,
                             .name = tec_store_remote_name(s, segment)};
    pthread_mutex_unlock(&s->lock);
    return is;
}

/* Pinned KV of that name; NULL: the store has none. */
static struct tec_kv *find(struct tec_store *s, const struct wanted *w)
{
    struct tec_kv *kv = NULL;
    pthread_mutex_lock(&s->lock);
    uint32_t at = tec_store_texts(s, &w->text);
    for (int i = 0; i < LOOKS && !kv && at != TEC_NO_SEGMENT; i++) {
        const struct tec_remote_name name = tec_store_remote_name(s, at);
        if (name.low == w->name.low && name.high == w->name.high && tec_store_kv_good(s, at))
            kv = s->segments[at].kv;
        at = s->segments[at].next_text;
    }
    if (kv)
        kv->pins++;
    pthread_mutex_unlock(&s->lock);
    return kv;
}

static enum tec_status copy(struct tec_store *s, uint32_t segment, const struct wanted *w,
                            struct tec_store *from, struct tec_kv *kv, unsigned char *all,
                            struct tec_error *err)
{
    const void *pieces[TEC_MAX_STORE_LAYERS];
    for (uint32_t l = 0; l < kv->layers; l++) {
        pieces[l] = all + (size_t)l * kv->stride;
        TEC_TRY(tec_store_read(from, kv, l, all + (size_t)l * kv->stride, err));
    }
    return tec_store_put_kv(s, segment, w->version, w->epoch, pieces, err);
}

enum tec_status tec_store_share(struct tec_store *s, uint32_t segment, struct tec_store *from,
                                struct tec_error *err)
{
    struct wanted w;
    struct tec_kv *kv = wants(s, segment, &w) ? find(from, &w) : NULL;
    if (!kv)
        return tec_fail(err, TEC_NOT_FOUND, "memory: no other store has that KV");
    unsigned char *all = tec_heap_get(s->heap, (size_t)kv->layers * kv->stride);
    enum tec_status status = all ? copy(s, segment, &w, from, kv, all, err)
                                 : tec_fail(err, TEC_NO_MEMORY, "memory: no room to copy KV");
    tec_heap_put(s->heap, all);
    tec_store_drop(from, kv);
    return status;
}
