#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

/* In front of each block: its size, so that giving back can count. */
struct header {
    size_t size;
    char pad[ALIGN - sizeof(size_t)];
};

void *tec_heap_get(struct tec_heap *heap, size_t size)
{
    int64_t call = atomic_fetch_add_explicit(&heap->calls, 1, memory_order_relaxed) + 1;
    int64_t fail_at = atomic_load_explicit(&heap->fail_at, memory_order_relaxed);
    if (size > (size_t)INT64_MAX / 2 || (fail_at && call >= fail_at))
        return NULL;
    size_t total = sizeof(struct header) + (size + ALIGN - 1) / ALIGN * ALIGN;
    int64_t bytes = atomic_fetch_add(&heap->bytes, (int64_t)size) + (int64_t)size;
    struct header *block = NULL;
    if (!heap->limit || (size_t)bytes <= heap->limit)
        block = aligned_alloc(ALIGN, total);
    if (!block) {
        atomic_fetch_sub(&heap->bytes, (int64_t)size);
        return NULL;
    }
    int64_t peak = atomic_load(&heap->peak);
    while (peak < bytes && !atomic_compare_exchange_weak(&heap->peak, &peak, bytes))
        ;
    atomic_fetch_add(&heap->live, 1);
    memset(block, 0, total);
    block->size = size;
    return block + 1;
}

void tec_heap_put(struct tec_heap *heap, void *p)
{
    if (!p)
        return;
    struct header *block = (struct header *)p - 1;
    atomic_fetch_sub(&heap->bytes, (int64_t)block->size);
    atomic_fetch_sub(&heap->live, 1);
    free(block);
}
