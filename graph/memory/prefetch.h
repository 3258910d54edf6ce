/* prefetch.h - KV of many segments brought in, layer by layer, while a forward computes.
 *
 * One thread of its own loads pieces (layer, segment) from whatever tier they are in to places that
 * the caller gives, in the order that the rules of loading.h choose. A forward computes meanwhile
 * and tells how far it is; before layer l it waits until all that layer l needs is there.
 *
 *   prepare (any one thread, may take the store's lock)
 *       tec_store_pin for each segment; S(0): the segments that layer 0 computes anew
 *   tec_prefetch_begin                   wakes the thread, which loads at once
 *   for each layer l                     frame side: nothing here blocks or locks
 *       tec_prefetch_wait(l)             spins; or tec_prefetch_ready(l) asked again and again
 *       tec_prefetch_started(l)
 *       ... attention of layer l, importance ...
 *       tec_prefetch_known(l + 1, set)   S(l + 1), as soon as it is known; not for the last
 *       ... MLP of layer l ...
 *       tec_prefetch_ended(l)
 *   tec_prefetch_finish                  what is still to load is given up; the result
 *   tec_store_drop for each segment
 *
 * S(l) is the set of segments whose KV at layer l is computed by the forward. A piece (l, u) is
 * loaded if u is outside S(l). S(l + 1) is a subset of S(l). A segment without KV (kv NULL) must be
 * in every set. Layers come in order; started, known, ended are called by one thread at a time
 * (lane 0, or whoever enqueues for a device); ready and wait by any number of lanes.
 *
 * What is ready: wait(l) returned true. The piece of each segment outside S(l) then lies at
 * tec_prefetch_pieces()[l * segments + u] and was checked against its checksum: K before rotation,
 * then V at tec_log_piece_value. That is staging[l * segments + u]; or, with `direct`, for KV in
 * RAM the pinned bytes themselves, which nothing changes. A layer may be started only once it is
 * ready.
 *
 * What fails: a piece that no tier gives any more (a damaged file, a server that went away) makes
 * the forward void: from then on wait returns false at once, and says so for every layer; go on
 * computing (on whatever staging holds) or stop; then finish says which segments are
 * to blame and why (TEC_NOT_FOUND). They count as missing in the store: compute them, or begin
 * again with them in every set. No wrong byte is ever said to be ready.
 *
 * A forward waits remote_ns in all for what it gets from a server, and no load takes longer than
 * what is left of that; time in which the forward computes does not count. Then it is void like one
 * whose KV is gone, and the server is left alone for a while (remote.h).
 *
 * Times that are believed: of loads, a line (fixed + per byte) for each tier, fitted to what was
 * measured with older measurements fading; of layers, what the caller gives, else means of the
 * forwards before, fading the same. They choose the order of loads, never a result.
 *
 * Memory is taken at create; later nothing is allocated. Thread-safe as said above; begin, finish,
 * counts and destroy belong to one thread at a time. */
#ifndef TEC_GRAPH_MEMORY_PREFETCH_H
#define TEC_GRAPH_MEMORY_PREFETCH_H

#include "graph/memory/loading.h"
#include "graph/memory/store.h"

/* A link that is slower than it is, for benches and tests: a load takes at least latency_ns and its
 * bytes at this rate. 0: as it is. */
struct tec_prefetch_limit {
    int64_t bytes_per_sec, latency_ns;
};

struct tec_prefetch_options {
    int layers, segments; /* most of a forward, 1 .. TEC_MAX_LOADING_LAYERS, _SEGMENTS */
    int64_t grain_bytes;  /* `bounded`: smallest part of a load that is split; 0: none is */
    int64_t remote_ns;    /* see above; 0: each load has the server's own time-out, and no more */
    int64_t poll_ns;      /* how long the thread sleeps when nothing may be loaded yet; 0: 50000 */
    bool direct;          /* KV in RAM is not copied */
    struct tec_prefetch_limit limit[TEC_KEPT_PLACES];
};

/* One forward. The arrays are copied, but what kv and staging point to is used until finish. */
struct tec_prefetch_forward {
    int layers, segments; /* segments may be 0: all is ready */
    enum tec_overlap overlap;
    struct tec_kv *const *kv; /* [segments] pinned; NULL: no KV, computed at every layer */
    unsigned char *const
        *staging;               /* [layers, segments] tec_store_kv_piece_bytes, aligned to 64; NULL
                                   where kv is, and with `direct` never written for KV in RAM */
    const unsigned char *first; /* [segments] S(0), nonzero: computed */
    const unsigned char *held; /* [layers, segments] nonzero: the caller has the piece elsewhere. It
                                  is not loaded, takes no time and has no address; NULL: none */
    const int *order;          /* [segments] which segment first; NULL: by number */
    const int64_t *reveal_ns;  /* [layers] believed: from its start until the next set is known */
    const int64_t *layer_ns;   /* [layers] and until it ends; both NULL: as measured before */
};

/* Counts of one forward, or (tec_prefetch_counts) of all. */
struct tec_prefetch_counts {
    int64_t forwards, failed;       /* failed: void */
    int64_t bytes[TEC_KEPT_PLACES]; /* loaded; direct ones count too */
    int64_t loads, splits;          /* parts of pieces; those that were not the whole piece */
    int64_t cancelled;              /* pieces that were still to load when finish was called */
    int64_t busy_ns;                /* the link was loading */
    int64_t overlap_ns;             /* of that, while a layer or its importance ran */
    int64_t bubble_ns;              /* layers that could have started waited for loads */
};

struct tec_prefetch_result {
    enum tec_status status; /* TEC_OK; TEC_NOT_FOUND: void, see `failed` */
    struct tec_prefetch_counts counts;
    const int64_t *bubble_ns;           /* [layers] */
    const unsigned char *failed;        /* [segments] nonzero: its KV could not be loaded */
    const struct tec_load_event *loads; /* in order, ns since begin; the first 2 a piece */
    size_t n_loads;                     /* arrays: borrowed until the next begin */
};

struct tec_prefetch;

/* Starts the thread. `store` and `heap` must outlive it. TEC_INVALID, TEC_NO_MEMORY; TEC_IO: no
 * thread. */
enum tec_status tec_prefetch_create(struct tec_prefetch **out, struct tec_store *store,
                                    const struct tec_prefetch_options *options,
                                    struct tec_heap *heap, struct tec_error *err);
/* Ends the thread; a forward that is open is finished. NULL is allowed. */
void tec_prefetch_destroy(struct tec_prefetch *prefetch);

/* A forward begins. One non-blocking wake-up. TEC_INVALID: out of range, a segment without KV
 * outside S(0), no place for a piece, an array missing, or the one before is not finished. */
enum tec_status tec_prefetch_begin(struct tec_prefetch *prefetch,
                                   const struct tec_prefetch_forward *forward,
                                   struct tec_error *err);

/* Returns the addresses of pieces: [layers, segments], the same array for all forwards (rows of
 * `segments` of the forward). An entry is set before its layer is ready. */
const unsigned char *const *tec_prefetch_pieces(const struct tec_prefetch *prefetch);

/* The frame side. A set that grows, or a layer out of order, makes the forward void: finish says
 * TEC_INVALID. */
void tec_prefetch_started(struct tec_prefetch *prefetch, int layer);
void tec_prefetch_known(struct tec_prefetch *prefetch, int layer, const unsigned char *set);
void tec_prefetch_ended(struct tec_prefetch *prefetch, int layer);
/* All of the layer is there, or never will be (false from wait, then). */
bool tec_prefetch_ready(const struct tec_prefetch *prefetch, int layer);
bool tec_prefetch_wait(const struct tec_prefetch *prefetch, int layer);
/* The piece is whole: of any layer, and it will be needed. */
bool tec_prefetch_there(const struct tec_prefetch *prefetch, int layer, int segment);

/* Give up what is still to load, wait for the piece on the link (spins), say what happened. Without
 * a forward: TEC_OK and zeros. */
enum tec_status tec_prefetch_finish(struct tec_prefetch *prefetch,
                                    struct tec_prefetch_result *result, struct tec_error *err);

/* Returns the counts of all forwards that are finished. */
struct tec_prefetch_counts tec_prefetch_counts(const struct tec_prefetch *prefetch);

/* Returns the predicted time of loading so many bytes from a tier, ns. */
int64_t tec_prefetch_believed(const struct tec_prefetch *prefetch, enum tec_kept_in tier,
                              size_t bytes);

#endif
