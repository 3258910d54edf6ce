/* ring.c - the queue of fixed-size items between one producing and one consuming thread.
 *
 * Head and tail count up without end and each is written by one thread only. A release store
 * publishes an item and the acquire load of the other side sees it, so no lock is needed. The size
 * is a power of two, so the counters may wrap. */
#include "base/ring.h"

#include <string.h>

enum tec_status tec_spsc_init(struct tec_ring *ring, struct tec_arena *arena, uint32_t capacity,
                              uint32_t item_size)
{
    if (capacity < 1 || capacity > 1U << 24 || item_size < 1)
        return TEC_INVALID;
    uint32_t size = 1;
    while (size < capacity)
        size *= 2;
    ring->items = tec_arena_push(arena, size, item_size, 64);
    if (!ring->items)
        return TEC_NO_MEMORY;
    ring->item_size = item_size;
    ring->mask = size - 1;
    atomic_init(&ring->head, 0);
    atomic_init(&ring->tail, 0);
    return TEC_OK;
}

bool tec_spsc_push(struct tec_ring *ring, const void *item)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&ring->head, memory_order_acquire) > ring->mask)
        return false;
    memcpy(ring->items + (size_t)(tail & ring->mask) * ring->item_size, item, ring->item_size);
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

bool tec_spsc_pop(struct tec_ring *ring, void *item)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&ring->tail, memory_order_acquire))
        return false;
    memcpy(item, ring->items + (size_t)(head & ring->mask) * ring->item_size, ring->item_size);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

bool tec_spsc_peek(const struct tec_ring *ring, uint32_t i, void *item)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (i >= atomic_load_explicit(&ring->tail, memory_order_acquire) - head)
        return false;
    memcpy(item, ring->items + (size_t)((head + i) & ring->mask) * ring->item_size,
           ring->item_size);
    return true;
}
