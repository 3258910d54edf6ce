/* triple.h - a triple buffer: a writer never waits, a reader gets the newest thing that is whole.
 *
 * Places are indices 0, 1, 2 into arrays of the owner. One writer and one reader at a time; each
 * end may be guarded by a lock of its own where several threads share it. */
#ifndef TEC_BASE_TRIPLE_H
#define TEC_BASE_TRIPLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TEC_TRIPLE_PLACES = 3, TEC_TRIPLE_NEW = 4 };

struct tec_triple {
    int writing, reading;
    _Atomic unsigned between; /* a place, and TEC_TRIPLE_NEW when nobody has read it */
};

static inline void tec_triple_init(struct tec_triple *m)
{
    m->writing = 0;
    m->reading = 2;
    atomic_init(&m->between, 1U);
}

/* The place `writing` is complete; the writer goes on with another one. */
static inline void tec_triple_post(struct tec_triple *m)
{
    unsigned full = (unsigned)m->writing | TEC_TRIPLE_NEW;
    m->writing = (int)(atomic_exchange_explicit(&m->between, full, memory_order_acq_rel) & 3U);
}

/* Take the newest place as `reading`; false when there is nothing new. */
static inline bool tec_triple_take(struct tec_triple *m)
{
    if (!(atomic_load_explicit(&m->between, memory_order_relaxed) & TEC_TRIPLE_NEW))
        return false;
    unsigned empty = (unsigned)m->reading;
    m->reading = (int)(atomic_exchange_explicit(&m->between, empty, memory_order_acq_rel) & 3U);
    return true;
}

#endif
