/* ring.h - a single-producer, single-consumer queue of fixed-size items; the only lock-free code.
 */
#ifndef TEC_BASE_RING_H
#define TEC_BASE_RING_H

#include "base/arena.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One thread pushes, one pops; each end may be handed to another thread only while idle. */
struct tec_ring {
    unsigned char *items;
    uint32_t item_size, mask;           /* mask = capacity - 1 */
    _Alignas(64) _Atomic uint32_t head; /* written by the consumer, release */
    _Alignas(64) _Atomic uint32_t tail; /* written by the producer, release */
};

/* Room for at least `capacity` items (1 .. 2^24) of `item_size` bytes, from the arena.
 * TEC_NO_MEMORY or TEC_INVALID on failure. */
enum tec_status tec_spsc_init(struct tec_ring *ring, struct tec_arena *arena, uint32_t capacity,
                              uint32_t item_size);

/* Copy an item in, or out. False when the ring is full, or empty; nothing changes then. */
bool tec_spsc_push(struct tec_ring *ring, const void *item);
bool tec_spsc_pop(struct tec_ring *ring, void *item);
/* Consumer: copy the i-th that is there, 0 the next to come out, and leave it. False: there are
 * fewer. */
bool tec_spsc_peek(const struct tec_ring *ring, uint32_t i, void *item);

#endif
