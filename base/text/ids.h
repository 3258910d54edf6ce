/* ids.h - where encoders put ids: the caller's array, and a count that goes on beyond it. */
#ifndef TEC_BASE_TEXT_IDS_H
#define TEC_BASE_TEXT_IDS_H

#include <stddef.h>

struct tec_ids {
    int *at;
    size_t n, capacity;
};

static inline void tec_ids_add(struct tec_ids *ids, int id)
{
    if (ids->n < ids->capacity)
        ids->at[ids->n] = id;
    ids->n++;
}

#endif
