/* store_inside.h - what tests do to a store from inside: find a segment by its name, write the file
 * anew when they choose. */
#ifndef TEC_TESTS_STORE_INSIDE_H
#define TEC_TESTS_STORE_INSIDE_H

#include "graph/memory/store_own.h"

#include <string.h>

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

/* What happens by itself when the file is full. */
static inline enum tec_status store_compact(struct tec_store *store, struct tec_error *err)
{
    pthread_mutex_lock(&store->lock);
    enum tec_status status = tec_store_compact_locked(store, err);
    pthread_mutex_unlock(&store->lock);
    return status;
}

#endif
