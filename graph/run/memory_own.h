/* memory_own.h - what the files of memory.h share. */
#ifndef TEC_GRAPH_RUN_MEMORY_OWN_H
#define TEC_GRAPH_RUN_MEMORY_OWN_H

#include "base/triple.h"
#include "graph/encoder/encoder.h"
#include "graph/run/memory.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TEC_MEMORY_SLACK = 1024 };        /* bytes that a normaliser may drop */
enum { TEC_WORDS_DIM = 256, COLD = 64 }; /* of an embedding made from words */

/* KV to compute: filled by the worker, computed by the frame thread, kept by the worker. */
enum tec_job_state { TEC_JOB_EMPTY, TEC_JOB_READY, TEC_JOB_DONE };
struct tec_remember_job {
    _Atomic int state;
    struct tec_remember_text *texts; /* [max] sequences */
    int n_texts, n_segments, n_tokens;
    uint32_t *handles; /* [max] segments, in order of tokens */
    uint64_t *versions, *epochs;
    int *first, *tokens;  /* [max] of each segment */
    int *ids;             /* [segment_tokens] */
    unsigned char *k, *v; /* [layers, segment_tokens, row]: copies, where the host cannot read */
    struct tec_error err;
    bool failed;
};

/* What a remember node is to keep: token ids of finished texts, the newest alone. The frame thread
 * writes, whoever holds the memory's lock reads. */
struct tec_said_text {
    int n, *ids;                           /* [said_room]; n may be more: it is too long then */
    const struct tec_tokenizer *tokenizer; /* of the model that said it; NULL: there is none */
};
struct tec_memory_said {
    const struct tec_decl_node *node;
    struct tec_triple triple;
    struct tec_said_text place[TEC_TRIPLE_PLACES];
};

/* Why a recall failed: left by the frame's side, said by the worker. */
struct tec_memory_heard {
    _Atomic bool full;
    _Atomic int64_t others; /* since then */
    struct tec_error why;
    uint32_t handle; /* TEC_NO_SEGMENT: of no segment in particular */
    int64_t segment; /* serial number */
};

struct tec_memory {
    struct tec_memory_options options;
    const struct tec_decl_node *node;
    const struct tec_decl_resource *resource;
    const struct tec_decl_input *input;
    struct tec_heap *heap;
    struct tec_arena arena, scratch; /* scratch: of whoever holds the lock */
    pthread_mutex_t lock, words;     /* words: for reports of trouble only, held briefly */
    struct tec_store *store;
    struct tec_encoder *encoder; /* NULL: words */
    int dim;
    float *embedding; /* [dim] */
    int64_t step;
    _Atomic int64_t changes; /* of texts and groups */
    uint32_t cold[COLD],
        n_cold; /* segments whose KV is not in RAM, found by prompts; under the lock */
    const struct tec_template *template;
    int *ids;             /* [tokens_each] room to count */
    size_t segment_bytes; /* most of a segment's text: what tokens_each tokens can stand for */
    struct tec_memory_said *said; /* [n_said] in the order of the pipeline's remember nodes */
    int n_said, said_room;

    /* With a plan. */
    struct tec_plan *plan;
    int layers;
    size_t row; /* bytes of K of a token at a layer */
    int *beginning, n_beginning;
    unsigned char *begin_k, *begin_v; /* [layers, n_beginning, row]; NULL: not yet kept */
    struct tec_remember_job job;
    pthread_t worker;
    struct tec_store_cursor cursor; /* the worker's */
    uint32_t *looked;               /* [segments] */
    int64_t token_ns;               /* of a launch of segments, believed; the frame thread's */
    bool works;
    _Atomic bool stops;
    unsigned char **staging, *stage; /* [layers, segments] */
    struct tec_prefetch *prefetch;
    double *ratios; /* [layers] as declared, or as the frame's decision has it */
    bool decided, by_score, audit;
    int audits, agreed;

    /* Frame side. */
    struct tec_executor inner;
    struct tec_recall recall;
    const struct tec_memory_prompt *prompt; /* of the running recall */
    int pictures;                           /* of that: their rows */
    struct tec_segment_range *places;       /* [max_segments] of that: its segments behind them */
    unsigned char *first;                   /* [segments + 1] S(0) */
    unsigned char *set;                     /* [segments] what the prefetch is told */
    bool *fresh, *skipped;     /* [segments + 1] nothing kept is brought; by the frame's decision */
    int *order;                /* [segments] which is loaded first, by decision */
    double *score;             /* [segments] */
    int **held, *n_held;       /* [regions] ids whose full KV a region has */
    _Atomic float *importance; /* [max_segments] as last chosen by */
    const unsigned char *const *pieces;

    _Atomic int64_t counts[16]; /* memory.c: which is which */
    struct tec_memory_heard heard;
    struct tec_memory_damages damages; /* guarded by `words`, as the four below */
    int64_t told;                      /* damages that were said */
    char trouble[TEC_MEMORY_TEXT];
    int64_t calm_ns, unsaid; /* when as many as may be can be said again; troubles not said */
    _Atomic bool failing;    /* it was said that the store's file cannot be written */
};

enum {
    TEC_COUNT_PROMPTS,
    TEC_COUNT_SEGMENTS,
    TEC_COUNT_MISSING,
    TEC_COUNT_WHOLE,
    TEC_COUNT_ROWS,
    TEC_COUNT_ROWS_FULL,
    TEC_COUNT_WAITED,
    TEC_COUNT_CHOOSE,
    TEC_COUNT_REMEMBERED,
    TEC_COUNT_REMEMBER_NS,
    TEC_COUNT_FAILED
};
static inline void tec_memory_count(struct tec_memory *m, int what, int64_t n)
{
    atomic_fetch_add_explicit(&m->counts[what], n, memory_order_relaxed);
}

/* Bytes of KV that a memory keeps in RAM, at most. */
int64_t tec_memory_kept(const struct tec_decl_resource *r, size_t row, int layers);

/* The ids of a segment's text; *n, which may be more than room. Under the lock. */
enum tec_status tec_memory_encode(struct tec_memory *m, const char *text, size_t bytes, int *ids,
                                  size_t room, size_t *n, struct tec_error *err);
/* Its vector, to m->embedding. Under the lock. */
enum tec_status tec_memory_embed(struct tec_memory *m, const char *text, size_t bytes,
                                 struct tec_error *err);

/* memory_said.c: room for what remember nodes read; put what was said since the last time, under
 * the lock: how many segments, and in *why what could not be put (status TEC_OK: nothing). */
enum tec_status tec_memory_make_said(struct tec_memory *m, struct tec_error *err);
int tec_memory_take_said(struct tec_memory *m, struct tec_error *why);

/* memory_work.c: fill the job with segments that have no KV (false: there are none), under the
 * lock; run it on the frame thread; keep what it made. */
bool tec_memory_fill_job(struct tec_memory *m);
void tec_memory_run_job(struct tec_memory *m);
void tec_memory_keep_job(struct tec_memory *m);

/* memory_say.c. Something went wrong without hurting an answer: any thread but the frame's, under
 * no lock. It is well again. */
void tec_memory_say(struct tec_memory *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tec_memory_well(struct tec_memory *m);
/* The store's file cannot be written, for that reason; it was written again, if it could not be
 * before. */
void tec_memory_say_failing(struct tec_memory *m, const char *why);
void tec_memory_written(struct tec_memory *m);
/* Of the store, any thread: a part of its file cannot be used. Said at once while the store is
 * opened, else by the worker: tell_damage. */
void tec_memory_damaged(void *memory, const struct tec_log_damage *damage);
void tec_memory_tell_damage(struct tec_memory *m);
/* The frame's side: the running prompt could not be recalled, because of its `segment` (-1: of
 * none). The worker's: say so. When nothing comes any more: what was held back. */
void tec_memory_hear(struct tec_memory *m, const struct tec_error *why, int segment);
void tec_memory_tell(struct tec_memory *m);
void tec_memory_tell_rest(struct tec_memory *m);

enum tec_status tec_memory_start_worker(struct tec_memory *m, struct tec_error *err);
void tec_memory_stop_worker(struct tec_memory *m);

#endif
