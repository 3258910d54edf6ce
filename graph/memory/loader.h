/* loader.h - a thread that reads pieces of KV from whatever tier they are in.
 *
 * Jobs are done in the order in which they were submitted, several at once where the kernel allows
 * io_uring (and the build has liburing), else one by one with pread. One thread submits and takes
 * what is done; it is the same as decides what to load next (loading.h). The KV of a job stays
 * pinned by the caller until the job is taken. */
#ifndef TEC_GRAPH_MEMORY_LOADER_H
#define TEC_GRAPH_MEMORY_LOADER_H

#include "graph/memory/store.h"

enum { TEC_LOADER_MOST = 1024 };

struct tec_loader_options {
    uint32_t jobs;  /* most that are submitted and not yet taken, 1 .. TEC_LOADER_MOST */
    uint32_t depth; /* reads at once with io_uring, 1 .. 64 */
    bool no_uring;  /* pread even where io_uring would go */
};

struct tec_loader_job {
    struct tec_kv *kv;
    uint32_t layer;
    void *piece;            /* tec_kv_piece_bytes, aligned to 64; must not move */
    uint64_t tag;           /* the caller's */
    enum tec_status status; /* written: TEC_OK, or why the piece must be computed instead */
};

struct tec_loader;

/* Starts the thread. `store` must outlive it. TEC_INVALID, TEC_NO_MEMORY; TEC_IO: no thread. */
enum tec_status tec_loader_create(struct tec_loader **out, struct tec_store *store,
                                  const struct tec_loader_options *options, struct tec_heap *heap,
                                  struct tec_error *err);
/* Ends the thread after the jobs it has. NULL is allowed. */
void tec_loader_destroy(struct tec_loader *loader);

/* False: as many as `jobs` are under way. */
bool tec_loader_submit(struct tec_loader *loader, const struct tec_loader_job *job);

/* The next one that is done; waits for up to timeout_ns (0: not at all). False: none was. */
bool tec_loader_take(struct tec_loader *loader, struct tec_loader_job *job, int64_t timeout_ns);

/* "io_uring" or "pread". */
const char *tec_loader_how(const struct tec_loader *loader);

#endif
