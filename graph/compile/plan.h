/* plan.h - what compilation makes: parts captured at load, their frame tables, and the bytes of it.
 *
 * A part is a chain of nodes that always run together, or one node that a decision may run alone.
 * The plan is constant after create but for the contents of frame tables and key-value memory,
 * which belong to the run (graph/run). */
#ifndef TEC_GRAPH_COMPILE_PLAN_H
#define TEC_GRAPH_COMPILE_PLAN_H

#include "graph/load/pipeline.h"
#include "graph/nodes/node.h"

enum { TEC_MAX_DRAFT = 16 };       /* tokens that a draft proposes */
enum { TEC_PLAN_SEGMENTS = 4096 }; /* of a prompt, its beginning among them */
enum { TEC_MAX_BATCHES = 64, TEC_NO_PICTURES = -1 };
enum { TEC_MAX_PARTS = 3 * (TEC_MAX_BATCHES + 2) + 4 + TEC_MAX_ACTIONS + TEC_MAX_SESSIONS };

enum tec_part_kind {
    TEC_PART_FRAME,  /* prefill and, where one goes with it, an action node */
    TEC_PART_PREFIX, /* a private prefill */
    TEC_PART_DECODE, /* one captured batch */
    TEC_PART_VERIFY, /* one captured batch, of each request its next token and a draft's behind it
                      */
    TEC_PART_PACKED, /* of rings: prefills and a row of each sequence in flight */
    TEC_PART_SHIFT,  /* a ring's, interpreted: keys and values moved from stage to stage */
    TEC_PART_RECALL, /* a prompt of remembered segments, in pieces: two a layer */
    TEC_PART_RECALL_BRANCH, /* the same in one a layer, its importance in a branch: tables and
                             * activations are RECALL's */
    TEC_PART_REMEMBER,      /* segments computed by themselves, to be kept */
    TEC_PART_ENCODE,        /* texts to one vector each: a plan of its own */
    TEC_PART_SCORE,         /* a tree of texts behind a prefix */
    TEC_PART_ACTION         /* an action node alone, over a prefix that is complete */
};

/* Marks that parts reach in this order. */
enum {
    TEC_MARK_PREFILL,
    TEC_MARK_ACTION,
    TEC_MARK_DECODE,
    TEC_MARK_PACKED,
    TEC_MARK_SHIFT,
    TEC_MARK_SCORE,
    TEC_MARK_SUMS /* of a layer's attention, where they are made in a branch */
};

struct tec_plan_part {
    const char *name;
    enum tec_part_kind kind;
    int batch;              /* DECODE, VERIFY: requests; FRAME: observations */
    int action;             /* FRAME, ACTION: which of the spec's; else 0 */
    enum tec_stream stream; /* parts of one stream never overlap in time */
    bool beside;            /* the second set: runs on the lanes that the device splits off */
    struct tec_program program;
    struct tec_capture *capture;
    /* The same in pieces, to be run one after the other, other launches between them: activations
     * stay in a place of their own. NULL = not in pieces. */
    struct tec_capture **slices;
    int n_slices;
    int picture_steps;  /* FRAME, PREFIX: the first ones, that make rows of pictures */
    int picture_slices; /* the first ones, which are of these alone */
    unsigned char *own;
    size_t own_bytes;
    struct tec_table_block block;
    struct tec_prefix_table prefix, prefix_device; /* host and device side; FRAME, PREFIX, of
                                                    * ACTION the suffix, of RECALL pictures */
    struct tec_decode_table decode,
        decode_device;             /* DECODE, VERIFY; PACKED: what its rows choose */
    struct tec_table_block choice; /* of `decode`: PACKED, and FRAME where a chunk is tokens */
    struct tec_table_block seen;   /* RECALL: of `prefix`, which has its pictures alone */
    struct tec_moves moves, moves_device;                /* SHIFT */
    struct tec_recall_table recall, recall_device;       /* RECALL */
    struct tec_remember_table remember, remember_device; /* REMEMBER */
    struct tec_score_table score, score_device;          /* SCORE */
    struct tec_taps taps;
};

/* An action node as the compiler sees it. */
struct tec_plan_action {
    int steps;      /* Euler steps */
    int fixed;      /* most first actions that an observation may give; 0 = none */
    float guidance; /* largest pull towards an earlier chunk that it may give; 0 = none */
};

/* The sizes that a pipeline asks for; what the compiler needs to know of it. */
struct tec_plan_spec {
    int frame_tokens; /* rows of a prefix */
    int positions;    /* most positions of a row; 0 = as many as its sequence can be long */
    int text_tokens;  /* most tokens of a prompt */
    int pictures;  /* most valid cameras; 0 = as many as fit beside the prompt, TEC_NO_PICTURES */
    int n_actions; /* action nodes */
    struct tec_plan_action actions[TEC_MAX_ACTIONS];
    int frame_action;               /* which of them FRAME computes behind its prefill; -1 = none */
    int sessions;                   /* whose observations may be in one frame; 0 = 1 */
    int n_together;                 /* captured launches of several of these, besides that of one */
    int together[TEC_MAX_SESSIONS]; /* [n_together] observations in each, ascending */
    int request_slots;              /* requests in flight, of all sessions; 0 = no language */
    int new_tokens;                 /* most tokens of a request */
    int prompt_tokens; /* most tokens of a prompt of its own, read before these; 0 = none */
    int draft_tokens;  /* most tokens that are looked at behind a request's next one; 0 = none */
    int unread;        /* of a draft: most tokens that it reads before it proposes any; else 0 */
    float penalty;     /* of tokens that a request has read or made; 0 or 1 = none */
    bool draws;        /* requests may draw their tokens */
    bool isolated;     /* a prefill may run without an action: a private one of requests, that of a
                        * frame which leaves the action out */
    bool secondary;    /* a secondary chain: no frames, its prefills are for requests, in turn */
    int slices;        /* pieces that such a prefill is captured in; 0 and 1 = in one */
    bool shares;       /* rows of its pictures may be those of another prefill of its model */
    bool beside;       /* requests may run beside the frame: their parts are there twice */
    int stages;        /* of a ring: tokens that a sequence makes, one a forward; 0 = no ring */
    int rings;         /* of these, whose forwards are one; 0 = 1 */
    int ring_tokens;   /* slots of each stage */
    bool apart;        /* a ring whose prefills are launches of their own */
    bool shifts;       /* a ring whose sequences move from stage to stage; else their slots stay */
    bool gathers;      /* a ring whose attention reads a copy of all that is visible */
    int segments;  /* of a memory in one prompt, its fixed beginning among them; 0 = no memory */
    bool branches; /* RECALL_BRANCH is made also for a device that runs a branch where it stands;
                    * after create: whether it is there */
    bool compares; /* a selection compares kept values amid a layer, which RECALL_BRANCH cannot */
    int segment_tokens;            /* tokens of segments that are computed together, to be kept */
    struct tec_score_limits trees; /* of texts that are scored; rows 0 = none are */
    int trie_nodes;                /* of all lists that requests choose from; 0 = there are none */
    int n_batches;
    int batches[TEC_MAX_BATCHES]; /* ascending */
    int max_k;
    enum tec_round round; /* what a GEMM may read of activations; in bf16 plans, but for INT8 */
    bool interpret;       /* nothing is merged, overlaid or chained: see run/interpret.h */
    bool taps, whole;     /* for judges: keep tensors; run the last layer for all rows */
};

/* Bytes by purpose; `total` is what a device must have. */
struct tec_byte_plan {
    int64_t weights, tables, kv, activations, frames, constants, taps, workspace, total;
    int64_t captures; /* host memory of the recorded lists */
};

struct tec_plan {
    struct tec_plan_spec spec;
    const struct tec_model *model;            /* borrowed */
    const struct tec_weights *weights;        /* borrowed */
    struct tec_timed *timed[TEC_MAX_ACTIONS]; /* of a flow; one for equal steps */
    struct tec_device *device;                /* borrowed */
    struct tec_kv_space space;                /* one for both streams: slots are disjoint */
    struct tec_kv_space gathered;             /* one layer, where a ring copies to be read */
    struct tec_kv_space crossed;              /* projected keys that attentions of an action read */
    struct tec_kv_space kept; /* K before rotation and V of segments just computed */
    int segment_slot;         /* where those are computed */
    /* Scratch of towers, or of a program's rows among each other, for each stream. */
    struct tec_kv_space towers[TEC_STREAM_COUNT][TEC_MAX_TOWERS];
    /* Of a text that a program reads, and of such rows behind it. */
    struct tec_kv_space reading[TEC_STREAM_COUNT][1 + TEC_MAX_TOWERS];
    struct tec_kv_pool prefixes; /* prefix regions */
    int *pictures;               /* by region: rows of pictures of a prefix that became features */
    int *tails, *trash;          /* [request_slots] first private slot; a slot nobody reads */
    unsigned **used; /* [request_slots] host: tokens that a request has read or made, a bit
                      * each; NULL without a penalty */
    int used_words;
    int scratch_slots[TEC_MAX_ACTIONS]; /* first slot of the keys of each action node's rows */
    int tree_slot[TEC_STREAM_COUNT];    /* first slot of the keys of a tree that is scored */
    struct tec_trie trie;               /* device side: what requests choose from; n 0: none */
    struct tec_trie host_trie;          /* the same for the host, where drafts are looked at */
    struct tec_plan_part parts[TEC_MAX_PARTS];
    int n_parts;
    int n_streams;
    unsigned char *activations[TEC_STREAM_COUNT]; /* one arena a stream, overlaid by its parts */
    size_t activation_bytes[TEC_STREAM_COUNT];
    int positions;       /* of the rotation tables */
    float *picture_rows; /* see struct tec_lower; of the first plan of the model that shares */
    bool owns_rows;
    float *cos_sin[TEC_MAX_ROTATIONS + TEC_MAX_TOWERS], *lut, *scratch[TEC_STREAM_COUNT];
    int *zero, *ends;
    int *shuffle; /* [pictures * patches] the patches of each row, where rows are squares of them */
    struct tec_byte_plan bytes;
    struct tec_arena arena;
    struct tec_heap *heap;
};

struct tec_plan_inputs {
    const struct tec_plan_spec *spec;
    const struct tec_model *model;
    const struct tec_weights *weights;
    struct tec_weight_source source; /* for time tables */
    float
        *picture_rows; /* of another plan of the model, borrowed; NULL: of its own, if it shares */
    struct tec_device *device;
};

/* Run every pass. On a measuring device nothing is taken and bytes are still exact. */
enum tec_status tec_plan_create(struct tec_plan **out, const struct tec_plan_inputs *inputs,
                                struct tec_heap *heap, struct tec_error *err);
void tec_plan_destroy(struct tec_plan *plan); /* NULL is allowed */

/* Device memory that a recall of the plan takes for kept pieces, in rooms of a layer each: 0 where
 * the device reads the host's. All of it is in bytes.kv. */
int tec_plan_recall_rooms(const struct tec_plan *plan);
size_t tec_plan_recall_room(const struct tec_plan *plan); /* bytes of one */

/* Most keys that an action reads projections of; 0 = of none. */
int tec_plan_keys(const struct tec_plan *plan);

/* Returns the address of a part's activations. */
unsigned char *tec_plan_activations(const struct tec_plan *plan, const struct tec_plan_part *part,
                                    size_t *bytes);

/* The part of that kind (for DECODE and VERIFY: the smallest that holds so many requests, for FRAME
 * so many observations, else the largest; for ACTION: of action node `rows`), or NULL. */
struct tec_plan_part *tec_plan_part(struct tec_plan *plan, enum tec_part_kind kind, int rows);

/* As above, for the second set; NULL where the spec asks for none. */
struct tec_plan_part *tec_plan_part_concurrent(struct tec_plan *plan, enum tec_part_kind kind,
                                               int rows);

/* Most observations that one launch of the plan takes. */
int tec_plan_together(const struct tec_plan *plan);
/* Rows of its largest captured decode; 1 where it has none. */
static inline int tec_plan_batch(const struct tec_plan *plan)
{
    return plan->spec.n_batches ? plan->spec.batches[plan->spec.n_batches - 1] : 1;
}

/* plan_constants.c. Device memory of `size` bytes, counted as constants; *out is a pointer to it.
 * The plan gives it back. */
enum tec_status tec_plan_constant(struct tec_plan *plan, size_t size, void *out,
                                  struct tec_error *err);

/* Make and upload all constants of a plan whose slots are reserved. */
enum tec_status tec_plan_constants(struct tec_plan *plan, struct tec_error *err);

/* A part without commands, behind those that are there. */
struct tec_plan_part *tec_plan_add_part(struct tec_plan *plan, enum tec_part_kind kind,
                                        const char *name, bool beside);

/* A plan of one part alone, "encode", for a caller who lowers into it: empty, with its arena. */
enum tec_status tec_plan_begin(struct tec_plan **out, const struct tec_model *model,
                               const struct tec_weights *weights, struct tec_device *device,
                               struct tec_heap *heap, struct tec_error *err);
/* The passes behind lowering. */
enum tec_status tec_plan_finish(struct tec_plan *plan, struct tec_error *err);

/* TEC_INVALID or TEC_UNSUPPORTED, in words, for sizes that do not fit the model; fills in what the
 * spec leaves open. tec_plan_create has done it. */
enum tec_status tec_plan_check(struct tec_plan_spec *spec, const struct tec_model *model,
                               struct tec_error *err);

/* Passes over programs, in the order of passes.def. */
#define NODE_PASS(name, text)
#define PASS(name, text) \
    enum tec_status tec_pass_##name(struct tec_plan *plan, struct tec_error *err);
#include "graph/compile/passes.def"
#undef PASS
#undef NODE_PASS

#endif
