/* memory.h - memories at work: texts come in, segments are found for a prompt, their kept keys and
 * values are brought to it, and what is missing is computed when nobody waits.
 *
 * A memory is a memory_load node and its kv.segments. A chain may have several: their segments
 * stand in its prompts one memory behind the other, in the order of their `after`. Each session of
 * a frame has a memory of its own of every node: segments, groups and their time, a store with a
 * file. What one of them has kept of a text another takes over in place of computing it.
 *
 * Three sides meet here:
 *   consumer   tec_memory_apply (changes), tec_memory_prompt (a prompt of segments); before a frame
 *   frame      the chain's executor: a recall in place of a prefill, whole or in slices; after a
 *              frame, KV of segments that have none, one bounded launch. No lock, no allocation,
 *              nothing that blocks
 *   worker     a thread of each node: what to compute next, what was computed to the store (a
 *              file, a server)
 * Consumer and worker share one lock; the frame side shares a state variable with the worker.
 *
 * An answer never waits for KV to be kept: a segment without KV is computed in the prompt itself,
 * as in a plain prefill. If kept KV is gone when it is needed, the prompt is computed whole. */
#ifndef TEC_GRAPH_RUN_RECALL_MEMORY_H
#define TEC_GRAPH_RUN_RECALL_MEMORY_H

#include "base/text/tokenizer.h"
#include "graph/encoder/encoder.h"
#include "graph/load/pipeline.h"
#include "graph/memory/prefetch.h"
#include "graph/memory/store.h"
#include "graph/run/launch/executor.h"
#include "graph/run/launch/planner.h"
#include "graph/run/recall/recall.h"
#include "graph/transform/observer.h"
#include "graph/transform/template.h"

/* What a memory that forgets begins with, as a recording says it. */
struct tec_memory_start {
    const char *memory; /* tec_memory_name */
    int session;
    const char *path;  /* a file of it (tec_memory_save); NULL: the one that the pipeline names */
    const char *shown; /* what the file is called in messages; NULL: by its path */
    uint64_t hash[2];  /* of it, held against that of what the file holds */
    const char *help;  /* what is said where the file is another one; or NULL */
};

/* Everything is borrowed until close. */
struct tec_memory_options {
    const struct tec_pipeline *pipeline;
    int node;     /* the memory_load node */
    int sessions; /* that have a memory of it each, 1 .. TEC_MAX_SESSIONS */
    const struct tec_model *model;
    const char *weights; /* names them: a hash of their forms, or how they were made */
    const char *content; /* a hash of what is in them; "" where `weights` says that, too */
    const struct tec_tokenizer *tokenizer; /* NULL: words become made-up ids */
    const char *root;                      /* holds pipelines/ */
    bool bf16;
    enum tec_quantize quantize;            /* of the model that keys and values come from */
    enum tec_round round;                  /* likewise */
    bool forgets;                          /* neither file nor server, whatever the file says */
    const struct tec_memory_start *starts; /* [n_starts] with forgets: those of other memories are
                                            * passed over */
    int n_starts;
    const struct tec_device_options *device; /* kind and tier of the encoder's */
    /* Something went wrong without hurting an answer: one line with node, memory and cause. The
     * first four at once, later ones every 10 s at most, with how many were not said; close says
     * the last of those that are left. From threads of the memory's or a consumer's, never the
     * frame's, under no lock; must not call the memory. NULL: nobody hears. */
    void (*trouble)(void *user, const char *line);
    void *user;
};

struct tec_memory;

/* Memory that a chain's memories take, of the host but for `device`: zeros where it has none. */
struct tec_memory_bytes {
    int64_t staging; /* of KV on its way to a prompt, and back to the store: taken at attach */
    int64_t kept;    /* the most that tiers.host takes, by and by */
    int64_t device;  /* of the plan's device, for tiers.gpu: taken at attach */
};
/* `plan` may be one that only measures. */
struct tec_memory_bytes tec_memory_measure(const struct tec_pipeline *pipeline, int chain,
                                           const struct tec_plan *plan);

/* Bytes of `tiers` that nothing of a memory_load node's can stay in. */
struct tec_memory_unused {
    const char *field;
    struct tec_where where; /* of the field */
    bool refuses;           /* not even a text: every change fails */
    char why[120];
};
enum { TEC_MEMORY_PLACES = 3 }; /* that tiers has fields of */
/* Of field number `place`; false: something can, or there are none. */
bool tec_memory_unused(struct tec_memory_unused *out, const struct tec_pipeline *pipeline,
                       const struct tec_decl_node *node, const struct tec_plan *plan, int place);

/* The memory_load nodes of a chain (-1: of all), in the order of prompts: how many, and their
 * indices. */
int tec_memory_nodes(const struct tec_pipeline *pipeline, int chain, int nodes[TEC_MAX_MEMORIES]);

/* Store, server, encoder, of all sessions: *out is the first one's. Errors are those of store.h and
 * encoder.h, with the pipeline's name. The file of session n is that of the pipeline, and behind it
 * ".n" but for the first; each has as large a part of the tiers. So has each of several nodes that
 * load from one kv.segments: its file has ".NODE" before that, but the first node's. */
enum tec_status tec_memory_open(struct tec_memory **out, const struct tec_memory_options *options,
                                struct tec_heap *heap, struct tec_error *err);
void tec_memory_close(struct tec_memory *memory); /* of all sessions; NULL is allowed */
/* That of another session, from the first one's. */
struct tec_memory *tec_memory_of(struct tec_memory *memory, int session);

/* The sentence encoder that a kv.segments names, its directory looked up as weights are; *out NULL
 * where it names none. For the pipeline's check, too. Errors are those of encoder.h. */
enum tec_status tec_memory_open_encoder(struct tec_encoder **out,
                                        const struct tec_decl_resource *resource, const char *root,
                                        enum tec_tier tier, struct tec_heap *heap,
                                        struct tec_error *err);

/* The memories of a chain, the first session's, which outlive it, in the order of prompts.
 * `patient`: slices wait for what is kept, as nobody waits for the frames; else they are tried
 * again in the next one. Destroyed before they are closed. */
struct tec_chain_memory;
enum tec_status tec_memory_chain_create(struct tec_chain_memory **out,
                                        struct tec_memory *const *memories, int n, bool patient,
                                        struct tec_heap *heap, struct tec_error *err);
/* Between two frames that nobody waits for, on the frame thread: until no segment misses its KV for
 * want of time. So runs repeat, whatever the machine does besides. */
void tec_memory_chain_settle(struct tec_chain_memory *memory);
void tec_memory_chain_destroy(struct tec_chain_memory *memory); /* NULL is allowed */

/* The template of its prompts, once; those of further sessions are alike: what stands before
 * {memory} is the fixed beginning, nothing where it has none. TEC_INVALID: it does not fit the
 * frame. */
enum tec_status tec_memory_chain_use(struct tec_chain_memory *memory, const struct tec_template *t,
                                     struct tec_error *err);

/* Once, before the first frame: with the plan, the threads start; segments without KV get it now,
 * the beginning too. */
enum tec_status tec_memory_chain_attach(struct tec_chain_memory *memory, struct tec_plan *plan,
                                        struct tec_error *err);

/* Bounds of the changes of one observation, which are judged before any of it is tokenised. A
 * segment's text has at most what tokens_each tokens of the tokenizer can stand for (tokens_each
 * times the bytes of its longest piece, and 1 KiB), and never more than TEC_MEMORY_SEGMENT. */
enum {
    TEC_MEMORY_SEGMENT = 64 << 10, /* bytes of a text */
    TEC_MEMORY_TEXTS = 1 << 20,    /* of all texts together */
    TEC_MEMORY_JSON = 8 << 20,     /* of the changes as they come */
    TEC_MEMORY_CHANGES = 1 << 10   /* segments that are put or removed */
};

/* A step of time and its changes, JSON: {"put": {ID: TEXT, ...}, "remove": [ID, ...]} ; NULL or ""
 * is no change. TEC_MALFORMED, TEC_INVALID (beyond a bound, longer than tokens_each) name the
 * entry, and nothing is done. Where the store fails (TEC_IO, TEC_NO_MEMORY), what stands before the
 * entry that is named is done. */
enum tec_status tec_memory_apply(struct tec_memory *memory, const char *json, size_t bytes,
                                 struct tec_error *err);

/* From now on changes are judged alone, and no time goes on: for who tries an observation before
 * there are frames. Of all sessions; false ends it. */
void tec_memory_try(struct tec_memory *memory, bool on);

/* What a remember node of the pipeline reads was finished: n tokens, of that tokenizer (NULL:
 * none). It is a segment from the next tec_memory_apply on, or when the memory closes; nothing
 * where the node is none of this memory's. Frame thread; takes nothing and waits for nothing. */
void tec_memory_said(struct tec_memory *memory, int node, const struct tec_tokenizer *tokenizer,
                     const int *ids, int n);

/* A prompt of segments, in one of a few rooms that are used in turn: those of all memories of the
 * chain, one memory behind the other. */
struct tec_memory_prompt {
    int session; /* whose memories they are of */
    int n, query, n_segments;
    int n_memories, ends[TEC_MAX_MEMORIES]; /* where each memory's segments end */
    struct tec_segment_range *segments;     /* [max_segments] */
    uint32_t *handles;                      /* [max_segments] */
    int *local;         /* [max_segments] tokens before it in its static group */
    struct tec_kv **kv; /* [max_segments] pinned; NULL: it has none */
    struct tec_segment_view *views;
};

/* Rooms of prompts: *prompts of them. */
enum tec_status tec_memory_rooms(const struct tec_chain_memory *memory,
                                 struct tec_memory_prompt *rooms, int n, struct tec_arena *arena,
                                 struct tec_error *err);

/* What a prompt asks for: texts, put behind the segments by the template; or, where `ids` is not
 * NULL, those in place of all that stands behind the segments. Segments are found by the texts;
 * where those are empty, by what the tokenizer makes of the ids; where there are none, by what the
 * template itself says behind the segments. */
struct tec_memory_query {
    int session; /* whose segments are looked for */
    struct tec_template_values values;
    const int *ids; /* [n] of the model's vocabulary */
    int n;
    bool cut;    /* ids that do not fit are left out at the end; else TEC_INVALID */
    bool always; /* where nothing is behind the segments, id 0 is */
    int waits;   /* tokens that it may be longer by, when a text is said: segments leave them */
};

/* Find segments for a query, assemble beginning, segments and query: ids [room]. What the prompt
 * pinned before is dropped. TEC_INVALID: more tokens than room. */
enum tec_status tec_memory_prompt(struct tec_chain_memory *memory, struct tec_memory_prompt *prompt,
                                  const struct tec_memory_query *query, int *ids, int room,
                                  struct tec_arena *scratch, struct tec_error *err);
void tec_memory_drop(struct tec_chain_memory *memory, struct tec_memory_prompt *prompt);

/* What stands behind the segments of a prompt for another query: ids [room], at most as many as
 * there is room for, where the prompt has room + prompt->query. They may be the query's. Nothing is
 * looked for or locked: for any thread. */
enum tec_status tec_memory_prompt_end(struct tec_chain_memory *memory,
                                      const struct tec_memory_prompt *prompt,
                                      const struct tec_memory_query *query, int *ids, int room,
                                      int *n, struct tec_arena *scratch, struct tec_error *err);

/* Changes of all memories that a session has of a chain: of each the value of its input's name. */
enum tec_status tec_memory_chain_apply(struct tec_chain_memory *memory, int session,
                                       const struct tec_value *values, size_t n,
                                       struct tec_error *err);

/* What a memory_load node declares: shares of its segments, [layers]; the rule with such shares,
 * which are borrowed. */
void tec_memory_ratios(const struct tec_decl_node *node, int layers, double *ratios);
struct tec_recall_rule tec_memory_rule(const struct tec_decl_node *node, const double *ratios);
/* Tokens of the prompts' fixed beginning whose KV is kept; 0: none. With a plan. */
int tec_memory_chain_kept(const struct tec_chain_memory *memory);

/* A launch of `tokens` tokens to be kept takes so long, as a table of costs has it: believed if
 * what was measured at load is less. Before the first frame. */
void tec_memory_prior(struct tec_memory *memory, int tokens, double us);

/* An executor that recalls where an input has a memory prompt, else does as `inner`. */
struct tec_executor tec_memory_chain_executor(struct tec_chain_memory *memory,
                                              const struct tec_executor *inner);

struct tec_memory_counts {
    int64_t segments, missing; /* of prompts: its segments, those without kept KV */
    /* Of a prompt of several memories the first one counts these. */
    int64_t prompts, whole;       /* whole: computed so because KV was gone */
    int64_t rows, rows_full;      /* rows computed over all layers, and of full prefills */
    int64_t waited_ns, choose_ns; /* for KV; to choose segments */
    int64_t remembered_tokens, remember_ns; /* computed to be kept */
    int64_t failed;                         /* of that, not kept: see `trouble` */
    int64_t shared;                         /* segments whose KV was another session's */
    /* To a device that does not read the host's memory; the first memory's, too: */
    int64_t sent_bytes;
    int64_t held_bytes; /* of each memory: pieces that were on the device already */
    int64_t fed, ahead; /* layers that kept pieces came to; of these, all of it before the layer in
                         * front had ended */
    struct tec_prefetch_counts prefetch;
    struct tec_store_counts store;
};
struct tec_memory_counts tec_memory_counts(struct tec_memory *memory);

/* The damaged parts of the file: their number, the first seven of them and the newest. Copied; any
 * thread. */
enum { TEC_MEMORY_DAMAGES = 8 };
struct tec_memory_damage {
    int64_t offset, bytes; /* in the file */
    char segment[64];      /* its name, "" where that is not known */
    uint64_t serial;       /* its number, 0 where that is not known */
    char what[64];
};
struct tec_memory_damages {
    int64_t n;
    struct tec_memory_damage first[TEC_MEMORY_DAMAGES];
};
void tec_memory_damages(struct tec_memory *memory, struct tec_memory_damages *out);
/* The name of its kv.segments; of a later chain's node that loads from it also the node's. */
const char *tec_memory_name(const struct tec_memory *memory);
/* That node. */
const struct tec_decl_node *tec_memory_node(const struct tec_memory *memory);
/* The store's file as the pipeline names it, NULL where there is none; whether the newest write to
 * it failed. Any thread. */
const char *tec_memory_file(const struct tec_memory *memory);
bool tec_memory_fails(struct tec_memory *memory);
/* Segments in the store. Any thread. */
uint32_t tec_memory_stored(struct tec_memory *memory);

/* What it remembers, and a new file of it, to begin with (tec_store_state, tec_store_save). */
struct tec_store_state tec_memory_state(struct tec_memory *memory);
enum tec_status tec_memory_save(struct tec_memory *memory, const char *path, struct tec_error *err);

/* The newest thing that went wrong without hurting an answer, or "". Copied. */
enum { TEC_MEMORY_TEXT = 600 };
void tec_memory_trouble(struct tec_memory *memory, char out[TEC_MEMORY_TEXT]);

#endif
