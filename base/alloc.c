/* alloc.c - the heap behind every allocation of the engine: it counts, bounds, and fails on
 * request.
 *
 * The counters are atomics, so threads share a heap without a lock. fail_at refuses the n-th call
 * and every later one, which lets tests reach each path that runs out of memory. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of LARGE bytes and more are aligned to a huge page and ask the kernel for huge pages:
 * fewer page faults while weights are loaded, fewer TLB misses while they are read. */
enum { ALIGN = 64, HUGE_PAGE = 1 << 21, LARGE = 4 * HUGE_PAGE };

/* The header in front of each block holds its size, so that freeing it can lower the byte count,
 * and what the system gave, which a sparse block does not begin with. */
struct header {
    size_t size;
    void *given;
    char pad[ALIGN - sizeof(size_t) - sizeof(void *)];
};

/* Allocate zeroed memory for a header and the block that follows it. */
static struct header *take(size_t total)
{
    size_t align = total >= LARGE ? HUGE_PAGE : ALIGN;
    struct header *block = aligned_alloc(align, (total + align - 1) / align * align);
    if (!block)
        return NULL;
    if (align == HUGE_PAGE)
        madvise(block, total, MADV_HUGEPAGE); /* only advice: nothing depends on it */
    memset(block, 0, total);
    block->given = block;
    return block;
}

/* The same from calloc, which does not write to fresh pages: they are zero as the system gives
 * them, one by one as they are written to. */
static struct header *take_sparse(size_t total)
{
    void *given = calloc(1, total + ALIGN);
    if (!given)
        return NULL;
    size_t into = (size_t)((uintptr_t)given % ALIGN);
    struct header *block = (struct header *)((char *)given + (into ? ALIGN - into : 0));
    block->given = given;
    return block;
}

static void *get(struct tec_heap *heap, size_t size, struct header *(*take_from)(size_t total))
{
    int64_t call = atomic_fetch_add_explicit(&heap->calls, 1, memory_order_relaxed) + 1;
    int64_t fail_at = atomic_load_explicit(&heap->fail_at, memory_order_relaxed);
    if (size > (size_t)INT64_MAX / 2)
        return NULL;
    if (fail_at && call >= fail_at) {
        atomic_fetch_add_explicit(&heap->refused, 1, memory_order_relaxed);
        return NULL;
    }
    size_t total = sizeof(struct header) + (size + ALIGN - 1) / ALIGN * ALIGN;
    int64_t bytes = atomic_fetch_add(&heap->bytes, (int64_t)size) + (int64_t)size;
    struct header *block = NULL;
    if (!heap->limit || (size_t)bytes <= heap->limit)
        block = take_from(total);
    if (!block) {
        atomic_fetch_sub(&heap->bytes, (int64_t)size);
        atomic_fetch_add_explicit(&heap->refused, 1, memory_order_relaxed);
        return NULL;
    }
    int64_t peak = atomic_load(&heap->peak);
    while (peak < bytes && !atomic_compare_exchange_weak(&heap->peak, &peak, bytes))
        ;
    atomic_fetch_add(&heap->live, 1);
    block->size = size;
    return block + 1;
}

void *tec_heap_get(struct tec_heap *heap, size_t size)
{
    return get(heap, size, take);
}

void *tec_heap_get_sparse(struct tec_heap *heap, size_t size)
{
    return get(heap, size, take_sparse);
}

void tec_heap_put(struct tec_heap *heap, void *p)
{
    if (!p)
        return;
    struct header *block = (struct header *)p - 1;
    atomic_fetch_sub(&heap->bytes, (int64_t)block->size);
    atomic_fetch_sub(&heap->live, 1);
    free(block->given);
}
