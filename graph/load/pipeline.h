/* pipeline.h - a pipeline file as a checked declaration: what runs on a robot, and by when.
 *
 * tec_pipeline_load reads a Lua or JSON file, checks everything that needs no model, and gives a
 * tree of plain structs: immutable, shareable between threads, owned by one arena. References
 * between things keep their name and hold an index into the pipeline's arrays. Members carry the
 * names of the file's fields; ranges, defaults and meaning of each are in graph/load/fields.def
 * (doc/pipelines.md is made from it). Numbers are in the unit of the field's name. */
#ifndef TEC_GRAPH_LOAD_PIPELINE_H
#define TEC_GRAPH_LOAD_PIPELINE_H

#include "base/alloc.h"
#include "base/error.h"
#include "graph/load/lists.h"
#include "graph/memory/importance.h"
#include "graph/memory/loading.h"
#include "graph/model/weights.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { TEC_MAX_RANK = 4, TEC_PIPELINE_SCHEMA = 1 };

/* Of one pipeline; more are E072: prompts of decode nodes, models that run, prefills of different
 * prompts, nodes that make texts. All nodes may make actions. */
enum { TEC_MAX_ROBOTS = 8 };
/* Request slots of all chains and sessions together, and so rows of a decision; more are E072. */
enum { TEC_MAX_ROWS = 64 };
/* Prefills that requests wait for, at most: two for each request, its own and its draft's, and
 * those that are held, where there are fewer requests. */
enum { TEC_MAX_PENDING = 2 * TEC_MAX_ROWS };
enum { TEC_MAX_PROMPTS = 8, TEC_MAX_MODELS = 4, TEC_MAX_CHAINS = 8, TEC_MAX_DECODERS = 8 };
enum { TEC_MAX_NODES = 32, TEC_MAX_ACTIONS = TEC_MAX_NODES };
enum { TEC_MAX_MEMORIES = 8 }; /* memory_load nodes, of all chains together */
enum { TEC_MAX_TEXTS = 8 };    /* that a prefill reads */

/* Element types of inputs, buffers and weights. */
enum tec_decl_dtype {
    TEC_DECL_U8,
    TEC_DECL_I32,
    TEC_DECL_I64,
    TEC_DECL_F32,
    TEC_DECL_F64,
    TEC_DECL_BF16
};

/* model { ... } */
struct tec_decl_model {
    struct tec_where where, where_arch, where_weights, where_adapter; /* of it; of these fields */
    struct tec_decl_places places;
    const char *name; /* "main" unless given */
    const char *arch; /* pipelines/models/<arch>.lua */
    const char *weights, *adapter;
    const char *embodiment;      /* NULL = the checkpoint's, or the only one */
    int dtype;                   /* enum tec_decl_dtype: BF16 or F32 */
    int quantize, quantize_head; /* enum tec_quantize: of layers; of the head, NONE or INT8 */
    int round;                   /* enum tec_round */
    const char *device; /* field `where`: devices, the first that is here; NULL = the run's */
};

/* A name of `where`: index N of cuda:N, else 0. */
enum { TEC_MAX_WHERE = 4 };
struct tec_decl_device {
    const char *kind; /* "cpu", "cuda" */
    int index;
};

enum tec_frame_clock { TEC_CLOCK_INTERNAL, TEC_CLOCK_EXTERNAL, TEC_CLOCK_ON_REQUEST };
enum tec_overrun { TEC_OVERRUN_SKIP_NEXT };

/* frame { ... } */
enum { TEC_MAX_SESSIONS = 16 };

struct tec_decl_frame {
    struct tec_where where;
    struct tec_decl_places places;
    double period_ms;
    int clock;   /* enum tec_frame_clock */
    int overrun; /* enum tec_overrun */
    int sessions;
    double gather_ms;
};

enum tec_input_kind { TEC_INPUT_IMAGE, TEC_INPUT_TENSOR, TEC_INPUT_TEXT, TEC_INPUT_SEGMENTS };

/* image { }, tensor { }, text { }, segments { }: members of other kinds are 0. */
struct tec_decl_input {
    struct tec_where where, where_shape; /* of the whole; of a tensor's shape, as it is now */
    struct tec_decl_places places;
    enum tec_input_kind kind;
    const char *name;
    int h, w;              /* image: pixels, 3 channels */
    int dtype;             /* image: U8 or F32; tensor: enum tec_decl_dtype */
    const char *slot;      /* image: the model's camera; NULL = by the robot, else by order */
    bool optional;         /* image: may be absent, is then masked */
    struct tec_ints shape; /* tensor, 1 to TEC_MAX_RANK sizes */
    int max_tokens;        /* text */
    const char *initial;   /* text: used until one arrives; field `default`; NULL = none */
    int max_segments, tokens_each; /* segments */
    int writer; /* text: 1 + the node whose newest finished text it is; 0 = it comes from outside */
};

enum tec_resource_kind {
    TEC_RESOURCE_FRAME,    /* kv.frame: one frame's prefix */
    TEC_RESOURCE_REQUESTS, /* kv.requests: resumable sequences in request slots */
    TEC_RESOURCE_RING,     /* kv.ring: one sequence a stage */
    TEC_RESOURCE_SEGMENTS, /* kv.segments: memory in tiers */
    TEC_RESOURCE_BUFFER    /* buffer: a chunk of actions or tokens */
};
enum tec_ring_shift { TEC_SHIFT_ROTATE, TEC_SHIFT_DEVICE_COPY };
enum tec_ring_pack { TEC_PACK_PACKED, TEC_PACK_GATHER };
enum tec_ring_change { TEC_CHANGE_FLUSH, TEC_CHANGE_KEEP };

/* tiers = { ... }: bytes of each place; 0: of `gpu` none, of `host` what a prompt's segments take
 * twice over, of `disk` as many as the disk has. */
struct tec_decl_tiers {
    struct tec_where where;
    struct tec_decl_places places;
    int64_t gpu, host, disk;
};

struct tec_decl_resource {
    struct tec_where where,                     /* of the whole */
        where_size, where_encoder, where_store; /* of tokens or a shape; of these fields */
    struct tec_decl_places places;
    enum tec_resource_kind kind;
    const char *name;
    int model;                            /* of the nodes that use it; -1 for buffers */
    int chain;                            /* kv: into the pipeline's chains, -1 = of none */
    int tokens;                           /* kv: of one sequence (of all for kv.segments) */
    int slots;                            /* requests: request slots */
    struct tec_ref share_prefix;          /* requests: index of a kv.frame resource */
    int stages;                           /* ring */
    int shift, pack, on_change;           /* ring: enum tec_ring_shift, _pack, _change */
    int stable_steps;                     /* segments */
    double threshold;                     /* segments: least likeness in a group */
    const char *store, *remote, *encoder; /* segments: a file, a server, a directory; or NULL */
    double remote_ms;                     /* segments: of a prompt, for what the server has */
    struct tec_decl_tiers tiers;          /* segments */
    struct tec_ints shape;                /* buffer, 1 to TEC_MAX_RANK sizes */
    int dtype;                            /* buffer */
    bool read_prev;                       /* some node reads it with `prev` */
};

enum tec_spawn_kind { TEC_SPAWN_NONE, TEC_SPAWN_EVERY, TEC_SPAWN_ON_CHANGE, TEC_SPAWN_ON_REQUEST };

struct tec_decl_spawn {
    enum tec_spawn_kind kind;
    int frames;        /* every(frames) */
    const char *value; /* on_change("value"); NULL = of the instruction */
};

enum tec_deadline_kind { TEC_DEADLINE_NONE, TEC_DEADLINE_HARD, TEC_DEADLINE_SOFT };
enum tec_on_miss {
    TEC_MISS_HOLD,       /* the last command; alias hold_last */
    TEC_MISS_DECAY,      /* the last command, shrinking over decay_actions */
    TEC_MISS_LAST_CHUNK, /* the newest chunk, aligned in time */
    TEC_MISS_ZEROS,
    TEC_MISS_STOP,    /* latched until reset */
    TEC_MISS_SHED,    /* soft: the request ends */
    TEC_MISS_CONTINUE /* soft: only counted */
};

/* hard { } and soft { } */
struct tec_decl_deadline {
    struct tec_where where, where_ms; /* of the whole; of ms, a value of --set too */
    struct tec_decl_places places;
    enum tec_deadline_kind kind;
    double ms;
    int on_miss;       /* enum tec_on_miss */
    int limit;         /* hard: misses in a row before stopping; 0 = no limit */
    int decay_actions; /* hard with TEC_MISS_DECAY */
};

/* out = "chunk", out = stream "narration" or out = stream { name = "plan", default = "stay" } */
struct tec_decl_out {
    const char *name; /* NULL = none */
    bool stream;
    int buffer;          /* index of the buffer resource; -1 for a stream or none */
    const char *initial; /* stream: its value until a text is finished; NULL = none */
};

enum tec_segment_order { TEC_ORDER_BEST_FIRST, TEC_ORDER_AS_PUT };
enum tec_kept_at { TEC_POSITIONS_RELOCATE, TEC_POSITIONS_LOCAL0 };

/* recompute = { first, decay, floor }: ratio of layer i = max(floor, first * decay^i). */
struct tec_decl_recompute {
    struct tec_where where;
    double first, decay, floor;
};

/* draft = { model, tokens }: tokens 0 = none. */
struct tec_decl_draft {
    struct tec_where where;
    struct tec_ref model;
    int tokens;
};

/* guide = { previous, ... }: weight 0 = none. */
struct tec_decl_guide {
    struct tec_where where;
    struct tec_ref previous,
        delays;   /* inputs: rows of the earlier chunk; a delay; index -1 = none */
    int schedule; /* enum tec_guide_schedule */
    double weight;
    int horizon, delay; /* rows */
};

enum tec_decl_node_kind {
    TEC_DECL_PREFILL,
    TEC_DECL_ACTION,
    TEC_DECL_DECODE,
    TEC_DECL_SCORE,
    TEC_DECL_MEMORY_LOAD,
    TEC_DECL_REMEMBER
};

/* prefill { }, action { }, decode { }, score { }, memory_load { }, remember { }: members of other
 * kinds are 0, NULL or -1. */
struct tec_decl_node {
    struct tec_where where, where_template, where_tokens,
        where_steps; /* of the whole; of template, max_tokens, steps */
    enum tec_decl_node_kind kind;
    const char *name;
    struct tec_ref model;
    struct tec_refs reads;       /* inputs, in order; index into inputs */
    struct tec_ref prefix;       /* action: an input, the first actions of the chunk */
    struct tec_decl_guide guide; /* action: what the chunk is pulled to */
    struct tec_ref writes;       /* prefill: a resource */
    struct tec_ref kv; /* action, decode, score: a resource; `prev` set for the previous frame's */
    struct tec_ref or_kv; /* action: the prefix that it takes until kv has the keys of a text */
    struct tec_ref from, into; /* memory_load: kv.segments, kv.frame */
    struct tec_refs streams;   /* remember: streams, by the index of the node that writes them */
    struct tec_ref memory;     /* remember: kv.segments */
    const char *key;           /* remember: id of the segment; NULL = the node's name */
    struct tec_decl_out out;
    int steps;                   /* action: denoising steps; 0 = the model's default */
    int max_tokens;              /* decode */
    struct tec_decl_spawn spawn; /* of all but remember */
    bool supersede;              /* decode, score: a new request ends the older ones */
    double temperature, top_p;   /* decode: 0: the likeliest token; share of what may be drawn */
    int top_k;                   /* decode: of so many tokens; 0 = of all */
    struct tec_texts choices;    /* decode: an answer is one of them; score: its candidates */
    bool ends, mean;             /* score: the end token counts; by the number of tokens */
    struct tec_texts stops;      /* decode: the first of them that occurs ends an answer */
    struct tec_ref prompt;       /* decode: an input, read behind the frame's prefix */
    struct tec_decl_draft draft; /* decode: who proposes its tokens */
    int proposes; /* prefill: 1 + the decode node whose draft reads by it; 0 = the file's own */
    const char *template; /* prefill: prompt template of the model; NULL = its default */
    struct tec_decl_deadline deadline;
    struct tec_ref partition;
    struct tec_ref pack_with;       /* decode: the prefill node it shares a launch with */
    struct tec_ref after;           /* a node that runs first */
    bool when_policy;               /* when = policy(): a decision may skip it */
    int overlap;                    /* memory_load: enum tec_overlap */
    int select, scoring, positions; /* memory_load: enum tec_selection, _scoring, tec_kept_at */
    int order;                      /* memory_load: enum tec_segment_order */
    double share;                   /* memory_load: of the tokens, cacheblend */
    int check_layer, first_tokens;  /* memory_load: cacheblend; epic */
    struct tec_decl_recompute recompute;
    bool root;   /* has a deadline or an output */
    bool culled; /* reaches no root: W103 */
    int chain;   /* into the pipeline's chains; -1 = culled */
};

/* A prefill and the nodes that stand on the keys it writes: directly, by share_prefix, by a ring.
 * A draft has a chain of its own, of its prefill alone.
 * The weights of a model are there once, whatever the number of its chains. */
struct tec_decl_chain {
    int model;        /* index */
    int prefill;      /* index of the node; -1 = the nodes of a model without one */
    const char *name; /* of its model; of its prefill where the model has several chains */
    bool in_frames;   /* prefilled in every frame; else where its requests wait for a prefill */
    int robot;        /* the first whose inputs its prefill reads; -1 = none of several */
    unsigned robots;  /* all of them, a bit each: of a chain in frames it is one */
};

enum tec_partition_priority { TEC_PRIORITY_LOW, TEC_PRIORITY_NORMAL, TEC_PRIORITY_HIGH };

/* sm { } */
struct tec_decl_partition {
    struct tec_where where;
    const char *name;
    double share; /* of the device, (0, 1] */
    int priority; /* enum tec_partition_priority */
};

/* capture { }: ascending points of every axis; the decision lattice. */
struct tec_decl_capture {
    struct tec_where where;
    struct tec_ints batch, k, depth, sessions;
    struct tec_numbers ratio;
    int slices; /* of a second model's prefill beside hard nodes; 0 = one a layer */
    int max_graphs;
    int on_miss; /* 0: "error", the only value of schema 1 */
};

/* memory { }: budgets in bytes, 0 = not limited. */
struct tec_decl_memory {
    struct tec_where where;
    struct tec_decl_places places;
    int64_t device, host;
};

/* use { } */
struct tec_decl_policy {
    struct tec_where where, where_name;
    struct tec_decl_places places; /* of parameters */
    const char *name;              /* built in, or a path to a .lua file */
    const json_t *params;          /* an object, or NULL */
};

/* guard { } */
struct tec_decl_guard {
    struct tec_where where, where_fallback; /* of the whole; of the fallback, as it is now */
    const char *fallback;
    int soft_us, hard_us, strikes, window_frames;
    int64_t heap; /* bytes */
};

/* A robot: of `robot`, which is the only one, or of `robots`. */
struct tec_decl_robot {
    const char *name;          /* its inputs are NAME/...; NULL: of `robot` */
    const json_t *description; /* an object; NULL: see path */
    struct tec_where where;    /* of the value */
    const char *file;          /* as written; NULL when inline */
    const char *path;          /* where the description was read from; NULL when inline. A file that
                                  needs the checkpoint (it names `given`) is read later from here,
                                  `description` is NULL then */
    const char *root;          /* the folder that this file may include from */
    const char *shipped; /* where it is looked after that: the shipped robots; NULL = nowhere */
};

struct tec_pipeline {
    struct tec_where where;
    const char *file, *path; /* its name in messages; as given to load, with others beside it */
    const char *name;
    int schema;
    int64_t seed;
    const char *robot_variant; /* field `variant`; NULL = the descriptions' default */
    int n_robots;              /* 0: none is declared */
    const struct tec_decl_robot *robots;
    struct tec_decl_frame frame;
    struct tec_decl_capture capture;
    struct tec_decl_memory memory;
    struct tec_decl_policy policy;
    struct tec_decl_guard guard;
    int n_models, n_inputs, n_resources, n_nodes, n_partitions;
    int n_streams; /* that a node reads */
    int n_drafts;  /* of nodes and of resources the last ones: what drafts read by, see drafts.c */
    const struct tec_decl_model *models;
    const struct tec_decl_input *inputs; /* [n_inputs + n_streams]: behind the inputs the streams
                                          * that nodes read, as text inputs with a writer */
    const struct tec_decl_resource *resources;
    const struct tec_decl_node *nodes; /* in order of declaration */
    const struct tec_decl_partition *partitions;
    int n_chains;
    const struct tec_decl_chain *chains; /* first that of the first actions, else of the first
                                          * hard node, else of the first prefill; then others that
                                          * are in frames */
    const int *order; /* [n_nodes] indices of nodes in an order that respects all edges */
};

/* The pipeline to load and its folders. Zero-initialise, then set the fields that are needed. */
struct tec_load_options {
    const char *path;    /* the file */
    const char *shown;   /* its name in messages; NULL = path */
    const char *text;    /* its content, when already in memory; else NULL */
    size_t n;            /* bytes of text */
    const char *root;    /* folder of the shipped pipelines, where extend, include and robot are
                            looked up after the own folder; NULL = the own folder alone */
    const char *adapter; /* of a path that is a checkpoint folder: an adapter to merge, or NULL */
    const char *hub;     /* the hub's cache, for such a path (base/store/hub.h), or NULL */
    bool bare;           /* such a path may lack weights and statistics: they are made up */
    const char *const *set; /* "PATH=VALUE": nodes.act.steps=5, frame.period_ms=33 */
    int n_set;
    const char *embodiment; /* of a checkpoint folder; NULL = the only one that it knows */
    bool any; /* also a pipeline that this release does not run, to be drawn or written out */
};

/* Load, merge overlays, apply --set, check, resolve. Everything wrong with the file is reported in
 * `d` (initialised by the caller; sorted on return), warnings too.
 * TEC_OK: *out is a pipeline without errors. TEC_MALFORMED: there are errors, *out is untouched.
 * TEC_UNSUPPORTED: the same, and all of them are E071 or E072; with options->any such a
 * pipeline is TEC_OK. TEC_IO: the file cannot be read. TEC_NO_MEMORY. The sentence in `err` names
 * the first error. */
enum tec_status tec_pipeline_load(struct tec_pipeline **out, const struct tec_load_options *options,
                                  struct tec_heap *heap, struct tec_diagnostics *d,
                                  struct tec_error *err);
void tec_pipeline_free(struct tec_pipeline *pipeline); /* NULL is allowed */

/* The canonical JSON form: defaults filled in, overlays and --set applied, the robot inlined, each
 * object with the place `at` that it was written at. tec_pipeline_load accepts it back and gives
 * the same form again. The caller owns *out. */
enum tec_status tec_pipeline_expand(json_t **out, const struct tec_pipeline *pipeline,
                                    struct tec_error *err);

/* Does a node make texts? Does it read an input or a stream; how many of a kind? */
bool tec_decl_makes_text(const struct tec_decl_node *node);
bool tec_decl_reads(const struct tec_decl_node *node, int input);
int tec_pipeline_reads(const struct tec_pipeline *p, const struct tec_decl_node *node,
                       enum tec_input_kind kind);
/* Is input i a prompt that a decode node has of its own? Which of these prompts a node's is, an
 * input and the chain whose model reads it, in the order of the inputs; -1 = it has none. */
bool tec_pipeline_is_prompt(const struct tec_pipeline *p, int input);
int tec_pipeline_prompt_of(const struct tec_pipeline *p, const struct tec_decl_node *node);
/* The id of the segment that a remember node writes. */
const char *tec_pipeline_key(const struct tec_decl_node *n);
/* Is an input one that an action node may be given, or not: actions, a delay? */
bool tec_pipeline_gives(const struct tec_pipeline *p, int input);
/* Whose input it is: an index of robots; -1 = no named robot's. 0 where robots have no names. */
int tec_pipeline_robot_of(const struct tec_pipeline *p, int input);
/* What begins a chain's prefill, besides its requests: a picture and the state are new in every
 * frame. Frames from one to the next where it is in frames: `spawn = every(n)`, else 1; 0: not by
 * their number. */
struct tec_decl_spawn tec_pipeline_trigger(const struct tec_pipeline *p, int chain);
int tec_pipeline_every(const struct tec_pipeline *p, int chain);
/* Observations from one run of an action node to the next: its own `spawn`, which may be its
 * prefill's; 0: not by their number. */
int tec_pipeline_acts_every(const struct tec_pipeline *p, const struct tec_decl_node *action);
/* Is a node of the chain that runs in every frame? */
bool tec_pipeline_in_frames(const struct tec_pipeline *p, const struct tec_decl_node *node);
/* When requests of a node are born: its own trigger, or that of the prefill whose value it starts
 * on. */
struct tec_decl_spawn tec_pipeline_spawn(const struct tec_pipeline *p,
                                         const struct tec_decl_node *node);
/* The kv.frame that a node's requests begin behind; -1 = none. The prefill that fills it; NULL =
 * none. */
int tec_pipeline_prefix(const struct tec_pipeline *p, const struct tec_decl_node *node);
const struct tec_decl_node *tec_pipeline_writer(const struct tec_pipeline *p, int resource);
/* Does a node decode a kv.ring? The i-th that does, in order of declaration; NULL = there are
 * fewer. That of a chain; NULL = none. */
bool tec_pipeline_rings(const struct tec_pipeline *p, const struct tec_decl_node *node);
const struct tec_decl_node *tec_pipeline_ring(const struct tec_pipeline *p, int i);
const struct tec_decl_node *tec_pipeline_ring_of(const struct tec_pipeline *p, int chain);
/* The first node whose output is a robot's actions; NULL = none. */
const struct tec_decl_node *tec_pipeline_actor(const struct tec_pipeline *p);
/* The i-th node that makes actions, in order of declaration: action nodes, and those that decode
 * rings. NULL: there are fewer. */
const struct tec_decl_node *tec_pipeline_action(const struct tec_pipeline *p, int i);
/* Does action node a run before b in a frame? The earlier deadline first, without one last, equals
 * in order of declaration. */
bool tec_pipeline_acts_before(const struct tec_decl_node *a, const struct tec_decl_node *b);
/* Does an action node run in one launch with its prefill? The first of those that act on this
 * frame's prefix does, where there is one in every frame. */
bool tec_pipeline_with_prefill(const struct tec_pipeline *p, const struct tec_decl_node *action);
/* May a decision leave it out of a frame whose prefill other actions stand on? That prefill is then
 * a launch of its own. */
bool tec_pipeline_leaves_prefill(const struct tec_pipeline *p, const struct tec_decl_node *action);
/* Index of the node with this name, or -1. */
int tec_pipeline_find_node(const struct tec_pipeline *p, const char *name);
/* The node that frames are made for: the first of actions, else the first hard one, else the first
 * prefill; NULL = none. Index of its model, else 0: others answer requests. */
const struct tec_decl_node *tec_pipeline_first(const struct tec_pipeline *p);
int tec_pipeline_main(const struct tec_pipeline *p);
/* Do two prefills write the same keys and values? */
bool tec_pipeline_same_prefill(const struct tec_pipeline *p, const struct tec_decl_node *a,
                               const struct tec_decl_node *b);
/* The devices of a model's `where`, in their order, to list[0 .. most - 1]: how many, 0 = it has no
 * `where`, -1 = it is none. */
int tec_pipeline_devices(const struct tec_decl_model *model, struct tec_decl_device *list,
                         int most);
/* Does any node run model i? */
bool tec_pipeline_runs(const struct tec_pipeline *p, int i);

/* How many captures the lattice makes: one a part and point of an axis that changes its shape. */
int tec_pipeline_captures(const struct tec_pipeline *p);

/* Words of the file for enum values: "prefill", "kv.frame", "image", "bf16". */
const char *tec_decl_node_word(enum tec_decl_node_kind kind);
const char *tec_resource_word(enum tec_resource_kind kind);
const char *tec_load_input_word(enum tec_input_kind kind);
const char *tec_decl_dtype_word(int dtype);

#endif
