/* prefetch_own.h - the inside of a prefetch, for its source files. */
#ifndef TEC_GRAPH_MEMORY_PREFETCH_OWN_H
#define TEC_GRAPH_MEMORY_PREFETCH_OWN_H

#include "graph/memory/prefetch.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* A line through (bytes, ns) by least squares, older pairs fading. */
struct tec_prefetch_line {
    double n, x, y, xx, xy; /* sums of weights, bytes, ns, products */
};

struct tec_prefetch {
    struct tec_heap *heap;
    struct tec_store *store;
    struct tec_prefetch_options options;
    struct tec_arena arena, rules_arena;
    struct tec_arena_mark rules_mark;
    pthread_t thread;
    bool started_thread, stop; /* stop: before the last `go` */
    sem_t go;

    /* The forward: written by begin, before `go`. */
    struct tec_prefetch_forward forward; /* its arrays are those below */
    struct tec_kv **kv;
    unsigned char **staging;
    unsigned char *held;
    const unsigned char **pieces;
    int *order;
    int64_t *reveal_ns, *layer_ns;
    int64_t begin;
    bool open;

    /* What the frame side tells: the arrays first, then the count (release). */
    unsigned char *sets;                            /* [layers, segments] */
    int64_t *started_at, *known_at, *ended_at;      /* [layers] */
    _Alignas(64) _Atomic int started, known, ended; /* layers; sets */
    _Atomic bool wrong, finish;

    /* What the thread tells. */
    _Alignas(64) _Atomic int ready; /* layers that are there, from the first */
    _Atomic bool void_, idle;
    _Atomic bool *there; /* [layers, segments] pieces that are whole */

    /* The thread's, and of who finishes once it is idle. */
    struct tec_loading rules;
    int64_t *load_ns;   /* [layers, segments] believed */
    int64_t *zeros;     /* [layers] */
    int64_t *whole_at;  /* [layers] */
    int64_t *bubble_ns; /* [layers] */
    int64_t *mean_reveal, *mean_layer;
    unsigned char *failed;
    struct tec_error why; /* the first of them */
    int64_t remote_left;  /* ns that the forward may still wait for a server; INT64_MAX: any */
    struct tec_load_event *loads;
    size_t n_loads, room_loads;
    struct tec_prefetch_line lines[TEC_KEPT_PLACES];
    struct tec_prefetch_counts counts, all;
};

/* prefetch_load.c, the thread: forwards until the end. */
void *tec_prefetch_run(void *prefetch);

/* prefetch_measure.c. Nanoseconds since begin. */
int64_t tec_prefetch_now(const struct tec_prefetch *prefetch);
/* A load took so long; what that says of others. */
void tec_prefetch_line_add(struct tec_prefetch_line *line, size_t bytes, int64_t ns);
int64_t tec_prefetch_line_at(const struct tec_prefetch_line *line, size_t bytes);
/* Bubbles, overlap, means, once a forward is over. */
void tec_prefetch_measure(struct tec_prefetch *prefetch);

#endif
