/* alloc.h - the only caller of malloc: a heap that counts, bounds, and fails on request. */
#ifndef TEC_BASE_ALLOC_H
#define TEC_BASE_ALLOC_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* One owner of memory, passed by handle. Zero-initialised is ready to use: no limit, no planned
 * failure. Thread-safe: counters are relaxed atomics. */
struct tec_heap {
    _Atomic int64_t calls;   /* allocations asked for so far */
    _Atomic int64_t live;    /* blocks not yet given back */
    _Atomic int64_t bytes;   /* bytes in live blocks */
    _Atomic int64_t peak;    /* largest value of `bytes` */
    _Atomic int64_t fail_at; /* the n-th call from 1 and every later one fails; 0 = never */
    _Atomic int64_t refused; /* allocations that the machine, the limit or fail_at refused */
    size_t limit;            /* most live bytes; 0 = no limit */
};

/* `size` zeroed bytes aligned to 64, or NULL. size 0 gives a valid pointer. */
void *tec_heap_get(struct tec_heap *heap, size_t size);

/* As tec_heap_get, for a large table of which a small part is used: a page of it takes memory when
 * it is first written to. Not for what the frame loop writes, which must not wait for a page. */
void *tec_heap_get_sparse(struct tec_heap *heap, size_t size);

/* Give back what one of them returned; NULL is allowed. */
void tec_heap_put(struct tec_heap *heap, void *p);

#endif
