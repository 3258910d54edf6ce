/* mailbox.h - three places for one kind of thing: a writer never waits, a reader gets the newest.
 *
 * Places are indices 0, 1, 2 into arrays of the owner. One writer and one reader at a time; each
 * end may be guarded by a lock of its own where several threads share it. */
#ifndef TEC_TOOLS_MAILBOX_H
#define TEC_TOOLS_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TEC_MAILBOX_PLACES = 3, TEC_MAILBOX_NEW = 4 };

struct tec_mailbox {
    int writing, reading;
    _Atomic unsigned between; /* a place, and TEC_MAILBOX_NEW when nobody has read it */
};

static inline void tec_mailbox_init(struct tec_mailbox *m)
{
    m->writing = 0;
    m->reading = 2;
    atomic_init(&m->between, 1U);
}

/* The place `writing` is complete; the writer goes on with another one. */
static inline void tec_mailbox_post(struct tec_mailbox *m)
{
    unsigned full = (unsigned)m->writing | TEC_MAILBOX_NEW;
    m->writing = (int)(atomic_exchange_explicit(&m->between, full, memory_order_acq_rel) & 3U);
}

/* Take the newest place as `reading`; false when there is nothing new. */
static inline bool tec_mailbox_take(struct tec_mailbox *m)
{
    if (!(atomic_load_explicit(&m->between, memory_order_relaxed) & TEC_MAILBOX_NEW))
        return false;
    unsigned empty = (unsigned)m->reading;
    m->reading = (int)(atomic_exchange_explicit(&m->between, empty, memory_order_acq_rel) & 3U);
    return true;
}

/* A number that only grows, and threads that wait for it to leave a value. Ringing is one
 * non-blocking system call, and none when nobody waits. */
struct tec_bell {
    _Atomic uint32_t rings;
    _Atomic int waiting;
};

void tec_bell_ring(struct tec_bell *bell);
/* Until rings leaves `seen` or `until_ns` (CLOCK_MONOTONIC; INT64_MAX: no end); may return early.
 */
void tec_bell_wait(struct tec_bell *bell, uint32_t seen, int64_t until_ns);

#endif
