/* model.h - a model as data: towers, a text, heads, programs (program.h), and where their tensors
 * are.
 *
 * A description is a Lua file in pipelines/models/. It is evaluated with `given` = {config,
 * generation, preprocessor, statistics, shapes, size, arch}, so sizes come from a checkpoint's JSON
 * files and tensor shapes, or from a named size. It answers false when a checkpoint is not its own.
 * Immutable after tec_model_open. */
#ifndef TEC_GRAPH_MODEL_MODEL_H
#define TEC_GRAPH_MODEL_MODEL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/store/checkpoint.h"

#include <jansson.h>
#include <stdbool.h>

enum tec_activation {
    TEC_ACTIVATION_GELU,
    TEC_ACTIVATION_GELU_ERF,
    TEC_ACTIVATION_SILU,
    TEC_ACTIVATION_RELU
};

enum {
    TEC_MAX_CAMERAS = 8,
    TEC_MAX_ALIASES = 4,
    TEC_MAX_TOWERS = 2,
    TEC_MAX_POSITION_SIDE = 1024,
    TEC_MAX_IGNORED = 16,
    TEC_MAX_ENDS = 8,  /* end tokens beside the first */
    TEC_MAX_AROUND = 4 /* tokens before, or behind, a picture's rows */
};

/* Matrices of 4-bit weights in groups, as published: NAME.weight of the description is in files as
 * NAME.qweight, .qzeros, .scales and perhaps .g_idx. AWQ ("gemm"): words along the columns, nibbles
 * 0 2 4 6 1 3 5 7. GPTQ: words along k, zeros stored less one in the first version of the format.
 */
enum tec_packing_kind { TEC_PACKING_NONE, TEC_PACKING_AWQ, TEC_PACKING_GPTQ };
struct tec_packing {
    enum tec_packing_kind kind;
    int group;    /* k of a group; 0: all */
    bool minus;   /* zeros are stored less one */
    bool ordered; /* k in the order of g_idx */
};

/* A bias on attention scores by the distance of key and query, the same in all layers: row b of a
 * table [rows, heads], b = tec_relative_bucket(key - query). */
struct tec_relative {
    const char *name; /* NULL = nothing */
    int rows, buckets, distance;
};

/* Stretched rotations: how the angle of a pair changes from theta^(-2 i / head_dim) a position.
 * LINEAR: divided by the factor. LLAMA3: so where its wavelength is beyond original / low tokens,
 * unchanged below original / high, and a blend of both between. */
enum tec_stretch_kind { TEC_STRETCH_NONE, TEC_STRETCH_LINEAR, TEC_STRETCH_LLAMA3 };
struct tec_stretch {
    enum tec_stretch_kind kind;
    double factor, low, high, original; /* low .. original: LLAMA3 alone */
};

/* How positions turn queries and keys. In a tower the first half of a head's pairs turn by the line
 * of a patch, the other one by its column. With `sections` a row of a text has three positions: of
 * time, line and column, which differ in rows of pictures alone. Pairs take turns: i % 3 = 1 turns
 * by the line and 2 by the column, as long as i < 3 times their section; all others by time. */
struct tec_rotation {
    double theta; /* the base; 0: they do not */
    bool f32;     /* angles are float32 products of position and frequency, as in code that computes
                   * them so; else float64. Far positions tell */
    struct tec_stretch stretch;
    int sections[3]; /* pairs of time, line, column; 0: one position turns all */
};

enum { TEC_MAX_STACK_LAYERS = 512, TEC_MAX_ROTATIONS = 4, TEC_MAX_DEEP = 8 };

/* The sizes of layers, which are wired as their programs say (program.h); mlp is that of the first
 * feed-forward. */
struct tec_stack {
    int layers, width, heads, kv_heads, head_dim, mlp;
};

/* A dense layer by its tensors' names; rows x cols as stored. */
struct tec_dense {
    const char *weight, *bias; /* bias NULL = none; weight NULL = no such layer */
    int rows, cols;
};

/* Rows of a tensor [rows, width] (dimensions of 1 may stand before). */
struct tec_table_rows {
    const char *name;
    int rows;
};

/* One way from patches to features. A byte of channel c is (byte / 255 - mean[c]) / std[c]. */
struct tec_tower {
    float mean[3], std[3];
    int prefix_rows; /* rows in front of the patches; they see them, and are seen */
    struct tec_model_program *program; /* from pixels on: enter, each layer, leave */
    struct tec_stack stack;            /* of that program */
};

/* The size of a slot's picture. */
struct tec_picture_size {
    int h, w;
};

/* Pictures to rows of the prefix; without towers the model reads text alone. Sizes are what the
 * programs of the towers and of `project` say. */
struct tec_vision {
    int image_size, patch, patches; /* of every tower: patches = (image_size / patch)^2 */
    struct tec_picture_size sizes[TEC_MAX_CAMERAS]; /* of the slots' pictures, which differ; then */
    int n_sizes; /* patches and tokens are those of the largest; 0 = all are image_size^2 */
    int shuffle; /* a square of shuffle^2 patches becomes one row */
    int tokens;  /* rows of the prefix that a picture takes: patches / shuffle^2 */
    bool floats; /* pictures are float32 in 0 .. 1, not bytes */
    int before[TEC_MAX_AROUND], n_before; /* tokens before each picture, rows of the embedding as */
    int behind[TEC_MAX_AROUND], n_behind; /* they are stored; and behind it */
    int blanks; /* pictures that are absent or masked, at most, that have these tokens too */
    struct tec_tower towers[TEC_MAX_TOWERS];
    int n_towers;
    struct tec_model_program *project; /* what leaves the towers to rows of the prefix */
};

/* Attention mask of the prefix. BIDIR: each row sees all rows. CAUSAL: pictures see pictures, text
 * sees them and earlier text. CAUSAL_ALL: each row sees itself and the rows before it. */
enum tec_mask { TEC_MASK_BIDIR, TEC_MASK_CAUSAL, TEC_MASK_CAUSAL_ALL };

/* Learned positions: row `first` + i of the table for the i-th token of a text. A token `skip` is
 * not counted and has the row before `first`; -1 = none is so. */
struct tec_positions {
    const char *name; /* NULL = none */
    int rows, first, skip;
};

/* Use of a text's last hidden rows: the next token alone, or one vector, their mean. */
enum tec_pool { TEC_POOL_NONE, TEC_POOL_MEAN };

/* Tokens to rows, and rows to logits or to one vector. */
struct tec_text {
    int vocab;
    float scale;   /* of an embedding row */
    float cap;     /* logits x count as cap * tanh(x / cap); 0: as they are */
    bool keys_f32; /* keys and values are float32 in a bf16 plan, too */
    bool round;    /* bf16 plans: logits are rounded to bf16 before argmax */
    enum tec_mask mask;
    bool causal; /* text sees nothing that follows it: any mask but BIDIR */
    bool lead;   /* the prompt's first token stands before the pictures */
    int bos, eos, max_tokens;
    bool marks;  /* a token `picture` of the prompt stands for the next picture's rows, */
    int picture; /* which else are before the text */
    int ends[TEC_MAX_ENDS], n_ends; /* tokens that end a text as eos does */
    float penalty;                  /* of tokens that were there before; 1: none */
    const char *embed[TEC_MAX_ALIASES], *head[TEC_MAX_ALIASES]; /* first present wins */
    struct tec_positions position;                              /* added to embedding rows, */
    struct tec_table_rows types;                                /* as row 0 of this table is */
    enum tec_pool pool;
    struct tec_model_program *program; /* what rows go through: enter, each layer, leave */
    struct tec_stack stack;            /* of that program */
};

/* Actions as tokens of the text: one a dimension, the highest ids of the vocabulary. */
struct tec_action_tokens {
    int count; /* tokens of an action; 0: the robot's statistics say */
    int most;  /* the largest number that the model's statistics know */
    int vocab; /* real tokens: without rows that only pad the matrix; 0: no such actions */
    int bins;
};

/* A chunk, however it is made (program.h has how): [horizon, dim]. Where actions are tokens it is
 * [1, dim], the ids of one; a model of text alone makes none: [0, 0]. */
struct tec_flow {
    int horizon, dim, steps; /* steps: the default number of a flow; 1 of a head */
};

/* A chunk in one forward: behind the prompt stand horizon * dim rows of zeros and the row of the
 * text's end token; a row of the robot's state stands before the prompt. The hidden rows from the
 * prompt's last on, horizon * dim of them, are what the description's action makes the chunk of;
 * without one the next token of each row is an action. */
struct tec_head {
    int rows;                          /* horizon * dim; 0: the model has no such head */
    int state;                         /* entries of the robot's state; 0: it has no row */
    struct tec_model_program *program; /* what makes that row; NULL = none does */
};

struct tec_model {
    const char *name;
    int n_slots;                        /* 0: no pictures */
    const char *slots[TEC_MAX_CAMERAS]; /* camera slots in prefix order */
    struct tec_vision vision;
    struct tec_text text;
    struct tec_flow flow;
    struct tec_action_tokens tokens;
    struct tec_head head;
    struct tec_model_program *program; /* what its functions compute, in its arena; NULL = none */
    bool float32; /* matrices and what a frame keeps stay float32 in plans of bf16, too */
    /* Tensors that are in files but never used; one that ends with * means all that begin so. */
    const char *ignored[TEC_MAX_IGNORED];
    json_t *json; /* the evaluated description, owned; read only */
    uint64_t
        identity; /* a hash of all that decides it: its files' texts, and what they were given */
    struct tec_arena arena;
};

struct tec_model_choice {
    const char *root;                  /* folder of descriptions, "…/pipelines/models" */
    const char *arch;                  /* description's name; NULL: recognise the checkpoint */
    const char *size;                  /* "full", "small" or "tiny" where there is no checkpoint */
    json_t *overrides;                 /* object merged into `given`, or NULL: {"mask": "causal"} */
    struct tec_checkpoint *checkpoint; /* or NULL; gets the parts that its description names */
    const char *beside; /* folder that holds those parts; NULL: the checkpoint's own */
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
    int64_t shape[5];
    bool leading;  /* dimensions of 1 may stand before */
    bool optional; /* used when present */
};

/* Whether a stored shape is the expected one. */
bool tec_expected_shape(const struct tec_expected *expected, int rank, const int64_t *shape);

/* Whether a tensor is one that the description says is never used. */
bool tec_model_ignores(const struct tec_model *model, const char *name);

/* Whether a token ends a text. */
bool tec_model_ends(const struct tec_model *model, int id);

/* Whether the model makes its actions by a flow over the prompt's keys (program.h), or by a head
 * behind its one forward. */
bool tec_model_flows(const struct tec_model *model);
bool tec_model_heads(const struct tec_model *model);

/* Of such a flow: whether a row stands behind the prompt that no other row of it sees; whether
 * first actions may be given, whose rows then are at the time of actions; whether it makes the
 * chunks of several observations together. */
bool tec_model_behind(const struct tec_model *model);
bool tec_model_fixes(const struct tec_model *model);
bool tec_model_batches(const struct tec_model *model);

/* Whether functions of its description say all that it computes (program.h): pictures and the
 * robot's state become rows, an action asks those for the chunk. Such a model has no text. */
bool tec_model_asks(const struct tec_model *model);

/* Whether its functions make rows of the prompt's last ones, and a flow over those (program.h):
 * what a frame keeps are not the text's keys. */
bool tec_model_denoises(const struct tec_model *model);

/* Whether an action node makes its chunk; the token that stands for a picture's rows, -1 = none. */
bool tec_model_acts(const struct tec_model *model);
int tec_model_mark(const struct tec_model *model);

/* Whether it reads a text. */
bool tec_model_reads(const struct tec_model *model);

/* The sizes of the layers whose keys and values of an observation a frame keeps. */
const struct tec_stack *tec_model_kept(const struct tec_model *model);

/* The size of a slot's picture; bytes of the largest. */
struct tec_picture_size tec_model_picture(const struct tec_model *model, int slot);
size_t tec_model_picture_bytes(const struct tec_model *model);

/* How a byte of each channel becomes a number, (byte / 255 - mean) / std: for the i-th tower, or
 * where it has functions for the i-th slot. */
void tec_model_picture_norm(const struct tec_model *model, int i, const float **mean,
                            const float **std);

/* The rows of an observation that an action asks; 0 without functions. */
int tec_model_encoded(const struct tec_model *model);

/* Whether it makes one vector of a text, and no tokens. */
bool tec_model_encodes(const struct tec_model *model);

/* The row of a table of `buckets` for a key `delta` positions behind its query: the lower half for
 * keys in front, the upper one for keys behind; in each, one row a position for the nearest half of
 * them, then logarithmic ones up to `distance`, where the last row begins. */
int tec_relative_bucket(const struct tec_relative *relative, int delta);

/* Entries of the robot's state that the model is given, padding included. */
int tec_model_state(const struct tec_model *model);

/* Visit every tensor of the model, ignored ones with rank 0, until `visit` fails. */
enum tec_status tec_model_visit(const struct tec_model *model,
                                enum tec_status (*visit)(void *user,
                                                         const struct tec_expected *expected,
                                                         struct tec_error *err),
                                void *user, struct tec_error *err);

/* "a.weight" with its last word replaced, in `text`: where packed matrices are (tec_packing_kind).
 */
void tec_packed_name(char text[256], const char *weight, const char *what);

/* The row of a table of side x side positions for the i-th of `patches` patches of a square,
 * row-major: the nearest one below by its share of the side, where picture and table differ. */
int tec_model_grid_row(int side, int patches, int i);

/* A table of positions [side * side, width], side at most TEC_MAX_POSITION_SIDE. `corners`: the
 * first and the last patch of a side have its first and its last row; else a patch is as wide as
 * its share of the side, and rows are smoothed where there are fewer patches. */
struct tec_grid_table {
    int side, width;
    bool corners;
    const float *at;
};

/* Positions of a grid of h x w patches, out [h * w, width]: bilinear. */
void tec_model_grid_resize(const struct tec_grid_table *table, struct tec_picture_size grid,
                           float *out);

/* The size of a slot's picture; patches, and rows of the prefix, of the first n pictures. */
struct tec_picture_size tec_vision_picture(const struct tec_vision *vision, int slot);
int tec_vision_patches(const struct tec_vision *vision, int n);
int tec_vision_tokens(const struct tec_vision *vision, int n);

/* Most rows of the prefix that a picture takes, tokens around it included. */
int tec_vision_rows(const struct tec_vision *vision);

/* The angle by which pair i of a head of `head_dim` turns from one position to the next, in
 * radians. */
double tec_model_angle(const struct tec_rotation *rotation, int head_dim, int i);

/* Which of a row's three positions turns pair i of a rotation with sections. */
enum tec_turn_axis { TEC_AXIS_TIME, TEC_AXIS_LINE, TEC_AXIS_COLUMN };
enum tec_turn_axis tec_model_axis(const struct tec_rotation *rotation, int i);

#endif
