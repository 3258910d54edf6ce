/* memory_own.h - what the files of memory.h share. */
#ifndef TEC_GRAPH_RUN_RECALL_MEMORY_OWN_H
#define TEC_GRAPH_RUN_RECALL_MEMORY_OWN_H

#include "base/triple.h"
#include "graph/run/recall/memory.h"
#include "graph/run/recall/memory_tier.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TEC_MEMORY_SLACK = 1024 };        /* bytes that a normaliser may drop */
enum { TEC_WORDS_DIM = 256, COLD = 64 }; /* of an embedding made from words */

/* KV to compute: filled by the worker, computed by the frame thread, kept by the worker. */
enum tec_job_state { TEC_JOB_EMPTY, TEC_JOB_READY, TEC_JOB_DONE };
struct tec_remember_job {
    _Atomic int state;
    struct tec_memory *whose;        /* the session's whose segments they are */
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

/* What a memory_load node has once for all sessions. */
struct tec_memory_shared {
    int n;
    struct tec_memory *of; /* [n] by session */
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_encoder *encoder; /* NULL: words */
    struct tec_log_encoder own;  /* what makes the vectors, as their files say it */
    pthread_mutex_t encodes;     /* one text at a time */
    struct tec_remember_job job;
    pthread_t worker;
    uint32_t *looked; /* [segments] */
    int64_t token_ns; /* of a launch of segments, believed; the frame thread's */
    bool works;
    _Atomic bool stops;
    /* Places of KV on its way to the prompt that is recalled, [layers, segments]: the pieces of a
     * layer side by side, in memory that the device copies from. */
    struct tec_device *device; /* with a plan */
    unsigned char **staging, *stage;
    size_t stage_layer; /* bytes of a layer */
    struct tec_memory_tier tier;
};

/* What the worker knows of a session's memory. */
struct tec_memory_worker {
    struct tec_store_cursor cursor;
    int64_t seen, synced, unkept; /* changes; changes that are durable; segments not kept */
    bool busy;                    /* something is missing, as far as is known */
};

/* What the frame's side of it decides of the prompt that is recalled, and what is brought to it. */
struct tec_memory_frame {
    struct tec_prefetch *prefetch;
    const unsigned char *const *pieces;
    double *ratios; /* [layers] as declared, or as the frame's decision has it */
    bool decided, by_score;
    unsigned char *first, *set; /* [segments] S(0); what the prefetch is told */
    bool *skipped;              /* [segments] nothing kept is brought, by the frame's decision */
    int *order;                 /* [segments] which is loaded first, by decision */
    double *score;              /* [segments] */
    int *stays;                 /* [segments] place in the device's tier; -1: it has none */
    unsigned char *held;        /* [layers, segments] pieces that are there */
};

/* Of one session. */
struct tec_memory {
    struct tec_memory_shared *shared;
    int session;
    const char *name, *path;              /* path: of the store's file; NULL = it has none */
    const struct tec_memory_start *start; /* NULL: it begins with its file, or empty */
    const char *begins;                   /* file of that */
    struct tec_memory_options options;
    const struct tec_decl_node *node;
    const struct tec_decl_resource *resource;
    const struct tec_decl_input *input;
    int at; /* the node's index in the topology */
    struct tec_heap *heap;
    struct tec_arena arena, scratch; /* scratch: of whoever holds the lock */
    pthread_mutex_t lock, words;     /* words: for reports of trouble only, held briefly */
    struct tec_store *store;
    int dim;
    float *embedding; /* [dim] */
    int64_t step;
    bool trial;              /* observations are judged, and change nothing */
    _Atomic int64_t changes; /* of texts and groups */
    _Atomic int64_t settled; /* of these, what the worker has nothing more to do for */
    _Atomic int64_t ended;   /* of these, what came before the last frame's end */
    uint32_t cold[COLD],
        n_cold;           /* segments whose KV is not in RAM, found by prompts; under the lock */
    int *ids;             /* [tokens_each] room to count */
    size_t segment_bytes; /* most of a segment's text: what tokens_each tokens can stand for */
    struct tec_memory_said *said; /* [n_said] in the order of the pipeline's remember nodes */
    int n_said, said_room;

    /* With a plan. */
    struct tec_plan *plan;
    int layers;
    size_t row; /* bytes of K of a token at a layer */

    struct tec_memory_worker worker; /* its thread's; before it starts, the attaching one's */
    struct tec_memory_frame frame;   /* the frame thread's; with a plan */
    _Atomic float *importance;       /* [max_segments] as last chosen by */
    _Atomic int64_t counts[16];      /* by TEC_COUNT_* */
    struct tec_memory_heard heard;
    struct tec_memory_damages damages; /* guarded by `words`, as the four below */
    int64_t told;                      /* damages that were said */
    char trouble[TEC_MEMORY_TEXT];
    int64_t calm_ns, unsaid; /* when as many as may be can be said again; troubles not said */
    _Atomic bool failing;    /* it was said that the store's file cannot be written */
};

/* The memories of a chain: its prompts, and the recall that runs. */
struct tec_chain_memory {
    int n;
    struct tec_memory *of[TEC_MAX_MEMORIES]; /* of the first session */
    struct tec_heap *heap;
    struct tec_arena arena;
    const struct tec_template *template;
    int *beginning, n_beginning;
    struct tec_template_text words; /* of the template behind {memory}: a prompt without a text
                                     * asks with them */

    /* With a plan. */
    struct tec_plan *plan;
    size_t row;
    unsigned char *begin; /* [layers] its K and then V, [n_beginning, row]; NULL: not kept */

    /* Frame side. */
    struct tec_executor inner;
    struct tec_recall recall;
    bool patient;                           /* a slice waits for what is kept */
    bool audit, runs;                       /* runs: a recall is begun and not done */
    int layer;                              /* of it: those before this one are done */
    const struct tec_memory_prompt *prompt; /* of the running recall */
    struct tec_recall_rule rules[TEC_MAX_MEMORIES];
    bool fed[TEC_MAX_MEMORIES];       /* kept pieces are brought to it */
    int pictures;                     /* rows of its pictures */
    bool whole;                       /* what was kept is gone: all is computed */
    struct tec_segment_range *places; /* [max_segments] its segments behind them */
    bool *fresh;                      /* [max_segments + 1] nothing kept is brought */
    int **held, *n_held;              /* [regions] ids whose full KV a region has */
    int audits, agreed;
};

/* Memory m of the chain, that of the session whose prompt it is. */
static inline struct tec_memory *tec_memory_in(const struct tec_chain_memory *c,
                                               const struct tec_memory_prompt *p, int m)
{
    return &c->of[m]->shared->of[p->session];
}

/* Segments of a prompt that are memory m's: from this one on. */
static inline int tec_memory_first(const struct tec_memory_prompt *p, int m)
{
    return m ? p->ends[m - 1] : 0;
}

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
    TEC_COUNT_FAILED,
    TEC_COUNT_SHARED,
    TEC_COUNT_SENT,
    TEC_COUNT_FED,
    TEC_COUNT_AHEAD,
    TEC_COUNT_HELD,
    TEC_COUNTS
};
static inline void tec_memory_count(struct tec_memory *m, int what, int64_t n)
{
    atomic_fetch_add_explicit(&m->counts[what], n, memory_order_relaxed);
}

/* Bytes of KV that the memories of a node keep in RAM, at most: those of all sessions. Among how
 * many nodes the tiers of its kv.segments are divided. */
int64_t tec_memory_kept(const struct tec_pipeline *p, const struct tec_decl_node *node, size_t row,
                        int layers);
int tec_memory_shares(const struct tec_pipeline *p, const struct tec_decl_node *node);

/* The ids of a segment's text; *n, which may be more than room. Under the lock. */
enum tec_status tec_memory_encode(struct tec_memory *m, const char *text, size_t bytes, int *ids,
                                  size_t room, size_t *n, struct tec_error *err);
/* Its vector, to m->embedding. Under the lock. */
enum tec_status tec_memory_embed(struct tec_memory *m, const char *text, size_t bytes,
                                 struct tec_error *err);

/* What its file, or the one that it begins with, is called in messages. */
static inline const char *tec_memory_shown(const struct tec_memory *m)
{
    if (m->start && m->start->path && m->start->shown)
        return m->start->shown;
    return m->path ? m->path : m->begins;
}

/* memory_vectors.c: what makes a memory's vectors, for its file; hears of a file of another's. */
enum tec_status tec_memory_name_encoder(struct tec_memory_shared *shared, struct tec_error *err);
enum tec_status tec_memory_renew(void *memory, const char *text, size_t bytes, float *out,
                                 struct tec_error *err);
void tec_memory_renewed(void *memory, const struct tec_store_vectors *what);
void tec_memory_retrained(void *memory, uint32_t segments);
/* The same of a file of a tokenizer of other rules, and of one that it begins with. */
enum tec_status tec_memory_count_tokens(void *memory, const char *text, size_t bytes,
                                        uint32_t *tokens, struct tec_error *err);
void tec_memory_counted(void *memory, uint32_t texts, uint32_t changed, uint32_t dropped);

/* memory_said.c: room for what remember nodes read; put what was said since the last time, under
 * the lock: how many segments, and in *why what could not be put (status TEC_OK: nothing). */
enum tec_status tec_memory_make_said(struct tec_memory *m, struct tec_error *err);
int tec_memory_take_said(struct tec_memory *m, struct tec_error *why);

/* memory_work.c: take over KV that another session has of segments that have none; fill the job
 * with those that still have none (false: there are none), under the lock; run it on the frame
 * thread; keep what it made. */
void tec_memory_share(struct tec_memory *m);
bool tec_memory_fill_job(struct tec_memory *m);
void tec_memory_run_job(struct tec_memory_shared *shared);
void tec_memory_keep_job(struct tec_memory_shared *shared);
/* The frame thread's: run jobs that are ready, if they are believed to end by then. Each waits
 * until the worker has read what the one before left in the plan. */
void tec_memory_chain_idle(struct tec_chain_memory *c, int64_t until_ns);

/* memory_say.c. Something went wrong without hurting an answer: any thread but the frame's, under
 * no lock. It is well again. */
void tec_memory_say(struct tec_memory *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tec_memory_well(struct tec_memory *m);
/* The same of a failure, TEC_IO: the store's file cannot be written. It was written again, if it
 * could not be before. */
void tec_memory_say_failure(struct tec_memory *m, enum tec_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tec_memory_written(struct tec_memory *m);
/* Of the store, any thread: a part of its file cannot be used. Said at once while the store is
 * opened, else by the worker: tell_damage. */
void tec_memory_damaged(void *memory, const struct tec_log_damage *damage);
void tec_memory_tell_damage(struct tec_memory *m);
/* How many segments have no keys and values yet, where they take a while: said, with `what` behind
 * it. Nobody puts meanwhile. */
void tec_memory_tell_missing(struct tec_memory *m, const char *what);
/* The frame's side: the running prompt could not be recalled, because of its `segment` (-1: of
 * none). The worker's: say so. When nothing comes any more: what was held back. */
void tec_memory_hear(struct tec_memory *m, const struct tec_memory_prompt *prompt,
                     const struct tec_error *why, int segment);
void tec_memory_tell(struct tec_memory *m);
void tec_memory_tell_rest(struct tec_memory *m);

/* memory_attach.c: what frames use of a node's memories, with its plan; the segments that a file
 * holds without KV get it, each once, within the time that a start may take. */
enum tec_status tec_memory_take(struct tec_memory_shared *shared, struct tec_plan *plan,
                                struct tec_error *err);
void tec_memory_fill_stores(struct tec_memory_shared *shared, bool patient);

/* memory_recall.c: a prompt of segments in steps, on the frame thread. begin, with what is kept or
 * whole; its layers in order; end, whatever failed before: TEC_NOT_FOUND where kept KV was gone,
 * and the region holds no prompt. ready: nothing of a layer would be waited for, which is known
 * when the one before is done. hold: a prompt that is done, where the next one may hold on to its
 * keys.
 */
enum tec_status tec_memory_begin(struct tec_chain_memory *c, int region,
                                 const struct tec_chain_input *input, struct tec_error *err);
bool tec_memory_ready(const struct tec_chain_memory *c, int layer);
enum tec_status tec_memory_layer(struct tec_chain_memory *c, int layer, struct tec_error *err);
enum tec_status tec_memory_end(struct tec_chain_memory *c, enum tec_status status,
                               struct tec_error *err);
void tec_memory_hold(struct tec_chain_memory *c, int region, const struct tec_prefix_input *o);
void tec_memory_count_prompt(struct tec_chain_memory *c, int rows);

enum tec_status tec_memory_start_worker(struct tec_memory_shared *shared, struct tec_error *err);
void tec_memory_stop_worker(struct tec_memory_shared *shared);

#endif
