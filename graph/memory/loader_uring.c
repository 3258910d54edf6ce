/* Reads by io_uring. A batch at a time: submit all, wait for all; what came short or failed is read
 * again with pread, which also says why. The file stays in place meanwhile (store's `files`). */
#include "graph/memory/loader_uring.h"

#ifdef TECTUM_HAS_URING
#include "graph/memory/log_own.h"
#include "graph/memory/store_own.h"

#include <liburing.h>

struct tec_loader_uring {
    struct tec_heap *heap;
    struct io_uring ring;
    bool broken;
};

struct tec_loader_uring *tec_loader_uring_open(uint32_t depth, struct tec_heap *heap)
{
    struct tec_loader_uring *u = tec_heap_get(heap, sizeof *u);
    if (!u)
        return NULL;
    u->heap = heap;
    if (io_uring_queue_init(depth, &u->ring, 0) == 0)
        return u;
    tec_heap_put(heap, u);
    return NULL;
}

void tec_loader_uring_close(struct tec_loader_uring *u)
{
    if (!u)
        return;
    io_uring_queue_exit(&u->ring);
    tec_heap_put(u->heap, u);
}

/* Queue the reads of what is not in RAM; how many. Marks: TEC_IO, not yet read. */
static unsigned queue(struct tec_loader_uring *u, const struct tec_store *store,
                      struct tec_loader_job *jobs, uint32_t n)
{
    unsigned queued = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct tec_kv *kv = jobs[i].kv;
        jobs[i].status = TEC_IO;
        struct io_uring_sqe *sqe = NULL;
        if (tec_kv_tier(kv) == TEC_KEPT_FILE && jobs[i].layer < kv->layers)
            sqe = io_uring_get_sqe(&u->ring);
        if (!sqe)
            continue;
        int64_t at = kv->place + (int64_t)jobs[i].layer * (int64_t)kv->stride;
        io_uring_prep_read(sqe, tec_log_file(store->log), jobs[i].piece, (unsigned)kv->stride,
                           (__u64)at);
        io_uring_sqe_set_data64(sqe, i);
        queued++;
    }
    return queued;
}

/* Wait for `left` reads, all of them even after a failure: the kernel writes to their pieces. */
static void collect(struct tec_loader_uring *u, struct tec_store *store,
                    struct tec_loader_job *jobs, unsigned left)
{
    while (left > 0) {
        struct io_uring_cqe *cqe = NULL;
        int failed = io_uring_wait_cqe(&u->ring, &cqe);
        if (failed == -EINTR)
            continue;
        if (failed < 0)
            continue; /* nothing else is said to happen; pieces must not be left to the kernel */
        struct tec_loader_job *job = &jobs[io_uring_cqe_get_data64(cqe)];
        const struct tec_kv *kv = job->kv;
        bool whole = cqe->res == (int)kv->stride &&
                     tec_log_piece_whole(job->piece, kv->stride, kv->unit, kv->version, job->layer);
        io_uring_cqe_seen(&u->ring, cqe);
        left--;
        if (!whole)
            continue;
        job->status = TEC_OK;
        tec_log_throttle(store->log, kv->stride);
        atomic_fetch_add(&store->read_bytes[TEC_KEPT_FILE], (int64_t)kv->stride);
    }
}

bool tec_loader_uring_read(struct tec_loader_uring *u, struct tec_store *store,
                           struct tec_loader_job *jobs, uint32_t n)
{
    if (u->broken)
        return false;
    pthread_rwlock_rdlock(&store->files);
    unsigned queued = store->log ? queue(u, store, jobs, n) : 0;
    unsigned sent = 0;
    while (sent < queued && !u->broken) {
        int more = io_uring_submit(&u->ring);
        if (more > 0)
            sent += (unsigned)more;
        else if (more != -EINTR && more != -EAGAIN)
            u->broken = true;
    }
    collect(u, store, jobs, sent);
    pthread_rwlock_unlock(&store->files);
    for (uint32_t i = 0; i < n && !u->broken; i++) /* in RAM, or to be read again and judged */
        if (store->log == NULL || jobs[i].status != TEC_OK)
            jobs[i].status = tec_store_read(store, jobs[i].kv, jobs[i].layer, jobs[i].piece, NULL);
    return !u->broken;
}
#else
struct tec_loader_uring *tec_loader_uring_open(uint32_t depth, struct tec_heap *heap)
{
    (void)depth;
    (void)heap;
    return NULL;
}

void tec_loader_uring_close(struct tec_loader_uring *u)
{
    (void)u;
}

bool tec_loader_uring_read(struct tec_loader_uring *u, struct tec_store *store,
                           struct tec_loader_job *jobs, uint32_t n)
{
    (void)u;
    (void)store;
    (void)jobs;
    (void)n;
    return false;
}
#endif
