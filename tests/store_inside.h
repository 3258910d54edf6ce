/* store_inside.h - what tests do to a store from inside: find a segment by its name, count those
 * of a text, write the file anew when they choose. */
#ifndef TEC_TESTS_STORE_INSIDE_H
#define TEC_TESTS_STORE_INSIDE_H

#include "graph/memory/store_own.h"

#include <string.h>
#include <xxhash.h>

/* The handle of an id; TEC_NOT_FOUND. */
static inline enum tec_status store_find(struct tec_store *store, const char *id, uint32_t *segment)
{
    pthread_mutex_lock(&store->lock);
    uint32_t at = tec_store_name(store, id, strlen(id));
    pthread_mutex_unlock(&store->lock);
    if (at == TEC_NO_SEGMENT)
        return TEC_NOT_FOUND;
    *segment = at;
    return TEC_OK;
}

/* Segments that are found by this text. */
static inline int store_texts(struct tec_store *store, const char *text, size_t bytes)
{
    const XXH128_hash_t of = XXH3_128bits(text, bytes);
    const struct tec_text_hash hash = {of.low64, of.high64};
    int n = 0;
    for (uint32_t at = tec_store_texts(store, &hash); at != TEC_NO_SEGMENT;
         at = store->segments[at].next_text)
        n += store->segments[at].hash.low == hash.low && store->segments[at].hash.high == hash.high;
    return n;
}

/* What happens by itself when the file is full. */
static inline enum tec_status store_compact(struct tec_store *store, struct tec_error *err)
{
    pthread_mutex_lock(&store->lock);
    enum tec_status status = tec_store_compact_locked(store, err);
    pthread_mutex_unlock(&store->lock);
    return status;
}

#endif
