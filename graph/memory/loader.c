/* The loader's thread: jobs come in by a ring, go out by another; a semaphore counts each. */
#include "graph/memory/loader.h"

#include "base/arena.h"
#include "base/ring.h"
#include "base/thread.h"
#include "graph/memory/loader_uring.h"
#include "graph/memory/store_own.h"

#include <errno.h>
#include <semaphore.h>
#include <time.h>

struct tec_loader {
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_store *store;
    struct tec_ring todo, done;
    sem_t work, ready;
    pthread_t thread;
    bool started;
    uint32_t room, under_way; /* of the thread that submits */
    uint32_t depth;
    struct tec_loader_uring *uring; /* NULL: pread */
};

/* One job after the other, each by itself. */
static void read_plainly(struct tec_loader *l, struct tec_loader_job *jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        jobs[i].status = tec_store_read(l->store, jobs[i].kv, jobs[i].layer, jobs[i].piece, NULL);
}

static void *run(void *user)
{
    struct tec_loader *l = user;
    struct tec_loader_job jobs[TEC_LOADER_DEPTH];
    for (;;) {
        while (sem_wait(&l->work) != 0 && errno == EINTR)
            continue;
        uint32_t n = 0;
        bool last = !tec_ring_pop(&l->todo, &jobs[n]); /* counted, but not there: the end */
        n += !last;
        while (!last && n < l->depth && sem_trywait(&l->work) == 0) {
            last = !tec_ring_pop(&l->todo, &jobs[n]);
            n += !last;
        }
        if (!l->uring || !tec_loader_uring_read(l->uring, l->store, jobs, n))
            read_plainly(l, jobs, n);
        for (uint32_t i = 0; i < n; i++) {
            (void)tec_ring_push(&l->done, &jobs[i]); /* there is room: under_way <= room */
            sem_post(&l->ready);
        }
        if (last)
            return NULL;
    }
}

static enum tec_status start(struct tec_loader *l, const struct tec_loader_options *o,
                             struct tec_error *err)
{
    TEC_TRY(tec_ring_init(&l->todo, &l->arena, o->jobs, sizeof(struct tec_loader_job)));
    TEC_TRY(tec_ring_init(&l->done, &l->arena, o->jobs, sizeof(struct tec_loader_job)));
    l->depth = o->depth;
    if (!o->no_uring)
        l->uring = tec_loader_uring_open(o->depth, l->heap);
    if (!tec_thread_start(&l->thread, run, l))
        return tec_fail(err, TEC_IO, "memory: the loader's thread cannot be started");
    l->started = true;
    return TEC_OK;
}

enum tec_status tec_loader_create(struct tec_loader **out, struct tec_store *store,
                                  const struct tec_loader_options *options, struct tec_heap *heap,
                                  struct tec_error *err)
{
    if (options->jobs < 1 || options->jobs > TEC_LOADER_MOST || options->depth < 1 ||
        options->depth > TEC_LOADER_DEPTH)
        return tec_fail(err, TEC_INVALID,
                        "memory: a loader of %u jobs, %u at once; at most %d and %d are possible",
                        options->jobs, options->depth, TEC_LOADER_MOST, TEC_LOADER_DEPTH);
    struct tec_loader *l = tec_heap_get(heap, sizeof *l);
    if (!l)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for a loader");
    l->heap = heap;
    l->store = store;
    l->room = options->jobs;
    tec_arena_init(&l->arena, heap);
    sem_init(&l->work, 0, 0);
    sem_init(&l->ready, 0, 0);
    enum tec_status status = start(l, options, err);
    if (status == TEC_OK) {
        *out = l;
        return TEC_OK;
    }
    if (status == TEC_NO_MEMORY)
        (void)tec_fail(err, status, "memory: no room for a loader of %u jobs", options->jobs);
    tec_loader_destroy(l);
    return status;
}

void tec_loader_destroy(struct tec_loader *l)
{
    if (!l)
        return;
    if (l->started) {
        sem_post(&l->work); /* without a job: the end */
        pthread_join(l->thread, NULL);
    }
    tec_loader_uring_close(l->uring);
    sem_destroy(&l->work);
    sem_destroy(&l->ready);
    tec_arena_finish(&l->arena);
    tec_heap_put(l->heap, l);
}

bool tec_loader_submit(struct tec_loader *l, const struct tec_loader_job *job)
{
    if (l->under_way >= l->room || !tec_ring_push(&l->todo, job))
        return false;
    l->under_way++;
    sem_post(&l->work);
    return true;
}

bool tec_loader_take(struct tec_loader *l, struct tec_loader_job *job, int64_t timeout_ns)
{
    struct timespec until;
    int failed = sem_trywait(&l->ready);
    if (failed != 0 && timeout_ns > 0) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t ns = until.tv_nsec + timeout_ns % 1000000000;
        until.tv_sec += (time_t)(timeout_ns / 1000000000 + ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
        do
            failed = sem_clockwait(&l->ready, CLOCK_MONOTONIC, &until);
        while (failed != 0 && errno == EINTR);
    }
    if (failed != 0 || !tec_ring_pop(&l->done, job))
        return false;
    l->under_way--;
    return true;
}

const char *tec_loader_how(const struct tec_loader *l)
{
    return l->uring ? "io_uring" : "pread";
}
