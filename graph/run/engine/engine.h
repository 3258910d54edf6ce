/* engine.h - a pipeline made ready to run: model, weights, plan, loop, one session. What the
 * program, the library and the tests open. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_H

#include "graph/compile/spec.h"
#include "graph/load/pipeline.h"
#include "graph/run/launch/choices.h"
#include "graph/run/launch/partitions.h"
#include "graph/run/loop/loop.h"
#include "graph/run/recall/memory.h"
#include "graph/run/session/session.h"

/* What the pipeline does not say, or what is said over it. Everything is borrowed until close.
 * The device's lanes beside the frame (device.beside) are set from the pipeline's partitions. */
struct tec_engine_options {
    const struct tec_pipeline *pipeline;
    const char *root;      /* holds pipelines/ and policies/ */
    const char *weights;   /* checkpoint of the frames' model; NULL: the pipeline's */
    const char *adapter;   /* merged into it (base/store/adapter.h); NULL: the pipeline's */
    bool random;           /* random weights of `size`; of a full one with the sizes of the
                            * pipeline's checkpoint, where that is here and describes its robot */
    uint64_t seed;         /* of random weights and of the noise */
    const char *size;      /* "full", "small", "tiny"; NULL = full */
    const char *dtype;     /* "f32", "bf16"; NULL: the pipeline's */
    bool exact;            /* whatever the pipeline says, no model is quantised */
    const char *tokenizer; /* file, of the frames' model; NULL: the checkpoint's */
    const char *hub; /* folder of files that were downloaded (base/store/hub.h); NULL = none */
    /* Of tec_engine_measure, which then says all that it finds: what inputs and kv.frame have that
     * does not fit goes here; see session.h. */
    struct tec_diagnostics *found;
    bool
        absent; /* the same: random stands for a checkpoint that is not here and may have a robot */
    struct tec_device_options device;
    const struct tec_weight_cache *weight_cache; /* packed weights kept between starts; NULL: none
                                                  * are looked for */
    const struct tec_cost_table *costs; /* what launches are thought to take at first; NULL: what
                                         * they take in the warm-up */
    double sampled_from; /* work of a launch (tec_capture_weigh) from which on the warm-up samples
                          * it; 0: what takes some tenths of a second */
    bool forgets;        /* a memory begins empty, or as `starts` say, and is kept nowhere */
    const struct tec_memory_start *starts; /* [n_starts] */
    int n_starts;
    bool interpret; /* see interpret.h */
    bool branches;  /* plans of memories branch also where the device runs no branches */
    bool settles;   /* a memory's work is done before the next observation:
                     * runs repeat. Frames that nobody waits for alone */
    bool saturated; /* frames follow each other; no next tick to miss */
    int actions;    /* that robots carry out of a chunk at each observation; 0 = as many as
                     * their descriptions say */
    /* Called when the session is ready and no weight has been read yet: a place to try the first
     * input. A failure ends open. NULL = none. */
    enum tec_status (*prepared)(void *user, struct tec_session *session, struct tec_error *err);
    void *prepared_user;
    void (*progress)(void *user, const char *what, int64_t done, int64_t total); /* or NULL */
    void (*released)(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record); /* see loop/options.h */
    void (*lost)(void *user, int session, int64_t seen,
                 int64_t captured_ns); /* see loop/options.h */
    void *user;
    void (*trouble)(void *user, const char *line); /* of the memory, see memory.h, and of a start
                                                    * that is not as others; or NULL */
    struct tec_event_sink events;                  /* see loop/options.h */
    const struct tec_engine *shares; /* its run's device is this one's, too, and so the thread that
                                      * runs its frames; closed later. NULL: it has its own */
    struct tec_loop_others others;   /* see loop/options.h */
    int64_t (*wanted)(void *self, int64_t now_ns); /* see loop/options.h */
    void *wanted_self;
};

/* One model of a pipeline, made ready. */
struct tec_engine_model {
    int index;                         /* in the pipeline */
    struct tec_device *device;         /* one of the engine's */
    struct tec_checkpoint *checkpoint; /* NULL: none; with random weights its sizes alone count */
    struct tec_tokenizer *tokenizer;   /* NULL when there is none */
    struct tec_model *model;
    struct tec_weights *weights; /* once, for all its chains */
    float *picture_rows;         /* of its first plan that shares them; NULL: none does */
};

/* One chain of a pipeline, made ready: its index is that in the pipeline. */
struct tec_engine_chain {
    struct tec_engine_model *of;
    struct tec_plan_spec spec;  /* as asked for */
    int pictures;               /* that its prefix has room for, once it is measured */
    struct tec_choices choices; /* lists of texts of its nodes */
    struct tec_plan *plan;
    int joins; /* a ring: 1 + the earlier chain whose plan it shares; 0 = the plan is its own */
    int at;    /* which of the plan's rings it is */
    struct tec_chain_memory *memory; /* NULL: it has none */
    struct tec_memory_prompt *rooms; /* [TEC_MAX_PENDING] see loop/options.h; NULL: none */
};

struct tec_engine {
    struct tec_engine_options options;
    struct tec_heap *heap;
    struct tec_device *device; /* the run's: the first of all */
    bool borrows;              /* it is another engine's */
    int n_devices;
    struct tec_device *devices[1 + TEC_MAX_MODELS];
    struct tec_decl_device where[1 + TEC_MAX_MODELS]; /* what they are, from the second on */
    int n_models,
        n_chains; /* the first are those of the frames; the next five members are theirs */
    struct tec_engine_model models[TEC_MAX_MODELS];
    struct tec_engine_chain chains[TEC_MAX_CHAINS];
    struct tec_checkpoint *checkpoint;
    struct tec_tokenizer *tokenizer;
    struct tec_model *model;
    struct tec_weights *weights;
    struct tec_plan *plan;
    int n_memories;
    struct tec_memory *memories[TEC_MAX_MEMORIES];  /* in the order of chains and prompts */
    struct tec_text_edges *edges;                   /* NULL: no prefill reads a stream */
    int n_sessions;                                 /* frame.sessions */
    struct tec_session *sessions[TEC_MAX_SESSIONS]; /* each of the chains in frames, joined */
    struct tec_session *session;                    /* the first */
    struct tec_loop *loop;
    struct tec_partitions *partitions; /* NULL: work runs one after the other */
    struct tec_topology topology;
    struct tec_arena arena, reading; /* `reading`: scratch of the frame thread */
};

/* The decision lattice and the names that policies see. */
void tec_engine_topology(struct tec_topology *topology, const struct tec_pipeline *pipeline,
                         const struct tec_plan_spec *spec, const struct tec_model *model,
                         const char **names);

/* The rings of a topology whose nodes are there, and the nodes that their launches are of: what
 * decodes one, and the prefill that is packed with it. */
void tec_engine_topology_rings(struct tec_topology *topology, const struct tec_pipeline *pipeline);

/* Schedule the thread that runs its frames, and those of its devices. */
enum tec_status tec_engine_schedule(struct tec_engine *engine, pthread_t frames,
                                    const struct tec_scheduling *how, struct tec_error *err);

/* TEC_DEVICE, in words: a device that a model is on has failed. */
enum tec_status tec_engine_failure(const struct tec_engine *engine, struct tec_error *err);

/* Everything that open would take, exactly, without taking it or reading weights: of all chains
 * together, parts in their order. Those of a second chain are named CHAIN/PART: by its model, or by
 * its prefill where the model has several. */
enum { TEC_MEASURED_PARTS = TEC_MAX_CHAINS * TEC_MAX_PARTS };
struct tec_measured {
    struct tec_byte_plan bytes;
    struct tec_plan_spec spec;         /* of the frames' model */
    struct tec_memory_bytes memory;    /* not in `bytes`, the device's, but for memory.device */
    int64_t host;                      /* most host memory: the memory's, and bytes.captures */
    int64_t needs[1 + TEC_MAX_MODELS]; /* of bytes.total, on each device, by the engine's order */
    int64_t kv_token;                  /* bytes of a token's keys and values, the same */
    struct tec_memory_unused small;    /* refuses: why nothing could be put in a memory's file */
    const char *small_name;            /* of that memory */
    bool robot;                        /* robot, inputs and template were looked at */
    int captures;                      /* parts and slices */
    int parts;
    const char *part_names[TEC_MEASURED_PARTS]; /* in `arena` */
    int commands[TEC_MEASURED_PARTS], barriers[TEC_MEASURED_PARTS];
    int branch[TEC_MEASURED_PARTS]; /* of the commands, those of a branch */
    int slices[TEC_MEASURED_PARTS]; /* 0 = captured in one */
    size_t activations[TEC_MEASURED_PARTS];
};
enum tec_status tec_engine_measure(struct tec_measured *out,
                                   const struct tec_engine_options *options, struct tec_heap *heap,
                                   struct tec_arena *arena, struct tec_error *err);

/* Model, weights and plan alone, on a device that only measures: for what asks about captures. */
enum tec_status tec_engine_plan(struct tec_engine **out, const struct tec_engine_options *options,
                                struct tec_heap *heap, struct tec_error *err);

/* Open: checkpoint, model, memory check (the pipeline's budget, the machine), weights, plan,
 * captures, session, loop; then every part has run once. TEC_NO_MEMORY says how much is needed and
 * there is. */
enum tec_status tec_engine_open(struct tec_engine **out, const struct tec_engine_options *options,
                                struct tec_heap *heap, struct tec_error *err);

/* Load the weights as open does, with options.weight_cache, and close: to make its files ahead.
 * *models: how many models have been loaded. */
enum tec_status tec_engine_pack(int *models, const struct tec_engine_options *options,
                                struct tec_heap *heap, struct tec_error *err);

/* The same loop over a virtual device: no checkpoint is read, no weight and no cache takes memory.
 * `device` is borrowed: of TEC_MAX_CHAINS the first is set by the caller, the others become like
 * it, and of all the plan is set here. There is no session and no tokenizer. */
enum tec_status tec_engine_simulate(struct tec_engine **out,
                                    const struct tec_engine_options *options,
                                    struct tec_virtual device[TEC_MAX_CHAINS],
                                    struct tec_heap *heap, struct tec_error *err);
void tec_engine_close(struct tec_engine *engine); /* NULL is allowed */

/* With options.settles, before an observation, on the frame thread: see memory.h. */
void tec_engine_settle(const struct tec_engine *engine);

/* The session of an action node, by its index: of its chain, so its robot's. The second is that of
 * the frame's i-th session; of the first what all have alike may be asked. */
struct tec_session *tec_engine_session(const struct tec_engine *engine, int action);
struct tec_session *tec_engine_session_at(const struct tec_engine *engine, int i, int action);
/* Its model's flow; floats of that node's chunk; the most of any node: floats of a chunk, rows and
 * columns of a robot's actions. */
struct tec_action_room {
    size_t chunk;
    int rows, columns;
};
const struct tec_flow *tec_engine_flow(const struct tec_engine *engine, int action);
size_t tec_engine_chunk(const struct tec_engine *engine, int action);
struct tec_action_room tec_engine_room(const struct tec_engine *engine);

/* Returns the tokenizer of the model of one of the loop's decoders; NULL = there is none. */
const struct tec_tokenizer *tec_engine_tokenizer(const struct tec_engine *engine, int decoder);

/* The text of an utterance's first n tokens, without special ones; in the arena. */
enum tec_status tec_engine_text(const struct tec_engine *engine, const struct tec_utterance *text,
                                int n, struct tec_arena *arena, char **out, struct tec_error *err);

#endif
