/* allocations.c - glibc's allocator and lock under their own names, counted and failing on request.
 */
#include "tests/allocations.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct allocations own;
struct allocations *allocations = &own;

#if ALLOCATIONS_SEEN
/* What glibc calls these functions itself. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static bool fails(void)
{
    struct allocations *a = allocations;
    long call = atomic_fetch_add(&a->calls, 1) + 1;
    bool now = a->fail_at && (call == a->fail_at || (a->for_ever && call > a->fail_at));
    if (now)
        errno = ENOMEM;
    return now;
}

/* Seen by shared libraries too. */
#pragma GCC visibility push(default)
void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}
void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}
void *aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __libc_memalign(align, size);
}
int posix_memalign(void **out, size_t align, size_t size)
{
    *out = fails() ? NULL : __libc_memalign(align, size);
    return *out ? 0 : ENOMEM;
}
void free(void *p)
{
    if (p)
        atomic_fetch_add(&allocations->frees, 1);
    __libc_free(p);
}

/* glibc has no other name for its own: this waits by trying. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int failed;
    atomic_fetch_add(&allocations->locks, 1);
    while ((failed = pthread_mutex_trylock(mutex)) == EBUSY)
        sched_yield();
    return failed;
}
#pragma GCC visibility pop
#endif
