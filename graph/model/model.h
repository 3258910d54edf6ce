/* model.h - a model as data: stacks of one generic block, towers, heads, and where their tensors
 * are.
 *
 * A description is a Lua file in pipelines/models/. It is evaluated with `given` = {config, shapes,
 * size, arch}, so sizes come from a checkpoint's configuration and tensor shapes, or from a named
 * size. It answers false when a checkpoint is not its own.
 * Immutable after tec_model_open. */
#ifndef TEC_GRAPH_MODEL_MODEL_H
#define TEC_GRAPH_MODEL_MODEL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/store/checkpoint.h"

#include <jansson.h>
#include <stdbool.h>

enum tec_role {
#define ROLE(name) TEC_ROLE_##name,
#include "graph/model/roles.def"
#undef ROLE
    TEC_ROLE_COUNT
};

enum tec_norm_kind { TEC_BLOCK_LAYER_NORM, TEC_BLOCK_RMS_NORM, TEC_BLOCK_ADAPTIVE_NORM };

enum { TEC_MAX_CAMERAS = 8, TEC_MAX_ALIASES = 4 };

/* `layers` equal layers: norm, attention, norm, feed-forward, each half added to the residual. */
struct tec_stack {
    int layers, width, heads, kv_heads, head_dim, mlp;
    enum tec_norm_kind norm;
    float norm_offset; /* added to a norm's weight: 1 where the file holds w of (1 + w) */
    float eps;
    double theta;                      /* RoPE base; 0: no rotation */
    bool gated;                        /* down(gelu(gate) * up), else down(gelu(up)) */
    const char *names[TEC_ROLE_COUNT]; /* NULL = absent */
};

/* A dense layer by its tensors' names; rows x cols as stored. */
struct tec_dense {
    const char *weight, *bias; /* bias NULL = none; weight NULL = no such layer */
    int rows, cols;
};

/* Pictures to rows of the prefix. */
struct tec_tower {
    int image_size, patch, tokens; /* tokens = (image_size / patch)^2 */
    struct tec_dense patch_embed;  /* rows = width, cols = 3 * patch * patch */
    const char *position;          /* [tokens, width] */
    struct tec_stack stack;
    struct tec_dense projector;
};

/* Tokens to rows, and rows to logits. */
struct tec_text {
    int vocab;
    float scale; /* of an embedding row */
    bool round;  /* logits are rounded to bf16 before argmax */
    bool causal; /* text sees pictures and earlier text only; pictures see pictures */
    int bos, eos, max_tokens;
    const char *embed[TEC_MAX_ALIASES], *head[TEC_MAX_ALIASES]; /* first present wins */
    struct tec_stack stack;
};

/* Flow matching: noise to actions over the prefix's keys. */
struct tec_flow {
    int horizon, dim, steps;         /* steps: the default number */
    double min_period, max_period;   /* of the sine and cosine of t */
    struct tec_dense in, out, state; /* state: one leading row from the robot's state */
    struct tec_dense time1, time2;   /* see `condition` */
    /* true: c = silu(time2 silu(time1 sincos(t))) conditions the stack's norms.
     * false: a row is time2 silu(time1 [in(x) ; sincos(t)]). */
    bool condition;
    struct tec_stack stack;
};

struct tec_model {
    const char *name;
    int n_slots;
    const char *slots[TEC_MAX_CAMERAS]; /* camera slots in prefix order */
    struct tec_tower vision;
    struct tec_text text;
    struct tec_flow flow;
    const char *ignored[TEC_MAX_ALIASES]; /* tensors that are in files but never used */
    json_t *json;                         /* the evaluated description, owned; read only */
    struct tec_arena arena;
};

struct tec_model_choice {
    const char *root;  /* folder of descriptions, "…/pipelines/models" */
    const char *arch;  /* description's name; NULL: recognise the checkpoint */
    const char *size;  /* "full", "small" or "tiny" where there is no checkpoint */
    json_t *overrides; /* object merged into `given`, or NULL: {"mask": "causal"} */
    const struct tec_checkpoint *checkpoint; /* or NULL */
};

/* Evaluate and check a description. TEC_NOT_FOUND: no such arch, or no description recognises the
 * checkpoint; TEC_MALFORMED: the description or the checkpoint's configuration. */
enum tec_status tec_model_open(struct tec_model **out, const struct tec_model_choice *choice,
                               struct tec_heap *heap, struct tec_error *err);
void tec_model_close(struct tec_model *model);

/* One tensor that a model reads. */
struct tec_expected {
    const char *names[TEC_MAX_ALIASES]; /* the first present one is used */
    int n_names, rank;
    int64_t shape[4];
    bool optional; /* used when present */
};

/* Visit every tensor of the model, ignored ones with rank 0, until `visit` fails. */
enum tec_status tec_model_visit(const struct tec_model *model,
                                enum tec_status (*visit)(void *user,
                                                         const struct tec_expected *expected,
                                                         struct tec_error *err),
                                void *user, struct tec_error *err);

/* A pattern with its {} replaced by the layer's index, in `text`. */
void tec_layer_name(char text[256], const char *pattern, int layer);

#endif
