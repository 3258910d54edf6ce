/* node.h - how a node kind lowers to ops: everything a node needs, and the one packed forward. */
#ifndef TEC_GRAPH_NODES_NODE_H
#define TEC_GRAPH_NODES_NODE_H

#include "graph/kv/space.h"
#include "graph/model/program.h"
#include "graph/model/timed.h"
#include "graph/model/weights.h"
#include "graph/nodes/memory_tables.h"
#include "graph/nodes/tables.h"
#include "ops/program.h"

/* A copy of some tensor's values, kept for a judge. Filled by the part it belongs to. */
struct tec_tap {
    const char *name;
    const float *data; /* device, [rows, ld] */
    const int *live;   /* device: live rows; NULL = all */
    int rows, cols, ld;
};

struct tec_taps {
    struct tec_arena *arena;
    struct tec_tap *items;
    int n, room;
    void **blocks; /* device memory, [n] or NULL for a view */
};

/* The context of lowering. `program` is the part being built. */
struct tec_lower {
    struct tec_program *program;
    const struct tec_model *model;
    const struct tec_weights *weights;
    const struct tec_timed *timed; /* action of a flow */
    float guidance; /* of an action with an earlier chunk in its table: the largest pull */
    const struct tec_kv_space *space;   /* the model's slots */
    const struct tec_kv_space *towers;  /* scratch of each tower, or of a program's prefill: of its
                                         * rows among each other */
    const struct tec_kv_space *reading; /* scratch of a text that a program reads, and of such rows
                                         * behind it */
    const struct tec_kv_space *crossed; /* float32, a layer for each attention over projections; or
                                         * NULL */
    const int *shuffle;                 /* device: [pictures * patches] patches by row; or NULL */
    float *const *cos_sin; /* by rotation: [positions, head_dim / 2, 2]; behind those of the text
                            * one of each tower, a row a patch. With sections rows of pictures have
                            * places behind `positions`, filled in every prefill (turns.c) */
    int positions;
    float *scratch;      /* attention's, for every lane */
    const float *lut;    /* [towers, or slots of a net, 3, 256] byte to pixel value */
    float *picture_rows; /* device: what the towers made last, [pictures' rows, padded width], read
                          * and written; NULL = nobody shares them */
    const int *zero;     /* device: a constant 0 */
    const int *ends;     /* device: [text.n_ends] constants; NULL = none */
    struct tec_device *device;
    bool round;     /* activations that enter a GEMM are rounded to bf16 too; */
    bool spares;    /* but not what queries, keys and values are made of, and of towers and what
                     * projects only what an activation writes */
    bool two_terms; /* products with bf16 weights may read activations as two bf16 terms */
    bool one_digit; /* those with 8-bit weights read activations in one digit of 8 bits */
    bool whole;     /* run the last layer of a prefill for all rows, as taps need it */
    bool cuts;      /* between layers the program may be cut */
    bool branches;  /* a recall's sums of attention are a branch of the layer */
    int sums_mark;  /* which ends with this mark */
    const struct tec_prefix_table *prefix;     /* device side; prefill and action */
    const struct tec_decode_table *decode;     /* device side; decode, packed */
    const struct tec_moves *moves;             /* device side; shift, interpreted */
    const struct tec_recall_table *recall;     /* device side; a prompt of remembered segments */
    const struct tec_remember_table *remember; /* device side; segments by themselves */
    const struct tec_score_table *score;       /* device side; score */
    struct tec_trie trie;            /* device side: what requests may choose from; n 0: none */
    const struct tec_kv_space *kept; /* K before rotation and V of segments that were computed */
    bool keeps;                      /* K is rounded before rotation too, as it is kept */
    const struct tec_kv_space *gathered; /* one layer that attention reads copies from; or NULL */
    int max_moved;                       /* tokens of one move */
    float penalty;                       /* of tokens that a row has seen; 1 = none */
    struct tec_taps *taps;               /* NULL = none */
    int picture_steps;                   /* prefill: of the program, up to the rows of pictures */
    int hidden; /* prefill: the text's rows that a program or a head reads, of a head a tensor of
                 * table->last; -1 = none */
    int angles; /* tensor: those of rows of pictures that are made in this program; -1 = none yet */
    int deep[TEC_MAX_DEEP]; /* prefill: what the products of vision.project->deep read; */
    int deep_row;           /* rows of pictures, to which they are added, begin here */
};

struct tec_node_kind {
    const char *name, *text;
    bool timed;   /* has launches of its own in a frame: costs have rows of it */
    bool says;    /* makes the texts of requests; in a ring instead what actions are made of */
    bool recalls; /* what it takes is part of the prompt behind it */
    void (*lower)(struct tec_lower *l); /* what fails is the program's status */
};

enum tec_node_id {
#define NODE(name, text) TEC_NODE_##name,
#include "graph/nodes/nodes.def"
#undef NODE
    TEC_NODE_COUNT
};

extern const struct tec_node_kind *const tec_node_kinds[TEC_NODE_COUNT];
/* The same of the kind with this name; false for no kind. */
bool tec_node_timed(const char *kind);
bool tec_node_says(const char *kind);
bool tec_node_recalls(const char *kind);
#define NODE(name, text) extern const struct tec_node_kind tec_node_##name;
#include "graph/nodes/nodes.def"
#undef NODE

/* Rows of a text through its layers (layers.h), or of a tower, over a table of row segments. */
struct tec_reading {
    const struct tec_tower *tower; /* whose layers, with `weights`; NULL = the text's */
    const struct tec_call_weights *weights;
    const struct tec_kv_space *space; /* a space of one layer is reused by all layers */
    const struct tec_rows *rows;      /* device side */
    bool keys_only;                   /* the last layer computes keys and values alone */
    const struct tec_rows *last; /* the last layer goes on with these rows alone; NULL = with all */
    const int *last_row;         /* device: where they stand in `rows` */
    const struct tec_moves *moves;  /* attention reads l->gathered, after these; NULL = space */
    const struct tec_moves *shifts; /* slots that move behind attention; NULL = none ever do */
    const char *tap;                /* prefix of tap names, "prefix."; NULL = no taps here */
    bool tap_inside;                /* what layers are made of, not only hidden states */
    const int *units;               /* tensors of values whose rows are the identity's, [n_units];
                                     * with taps: what each key weighs */
    int n_units;
};

/* The fixed tensor of a layer's keys or values in a space. */
int tec_lower_kv(struct tec_lower *l, const struct tec_kv_space *space, int layer, bool values);

/* An attention: its projections, the slots of its keys, and its rows. */
struct tec_attending {
    const struct tec_attend *attend;
    const struct tec_attention_weights *weights;
    const struct tec_kv_space *space;
    const struct tec_rows *rows;
    const float *bias; /* of tec_call_weights */
    int reach;
    bool whole;  /* what is rounded may be of whole numbers (tec_attention_args) */
    bool spared; /* and what rows gather is not rounded */
};
struct tec_kv_tensors {
    int k, v;
};

/* What is made of the outputs of a projection, whose keys and values go to their slots: queries, -1
 * where keys and values are all; queries alone, of rows that see others; and what they gather,
 * `round`ed where it enters a GEMM. */
struct tec_keys {
    int q, qkv;
    struct tec_kv_tensors kv;
};
int tec_lower_store(struct tec_lower *l, const struct tec_attending *a, int qkv, bool keys_only,
                    struct tec_kv_tensors kv);
int tec_lower_queries(struct tec_lower *l, const struct tec_attending *a, int q);
int tec_lower_attend(struct tec_lower *l, const struct tec_attending *a, int q,
                     struct tec_kv_tensors kv, bool round);

/* Norms of heads: of the columns of x from `at` on, in place. */
struct tec_head_norms {
    int head_dim;
    float offset, eps;
};
void tec_lower_norm_heads(struct tec_lower *l, const struct tec_head_norms *n, int x, int at,
                          int heads, const float *weight);

/* Rows of tokens: *n of them, at most max_rows, from row *first of x on. */
void tec_lower_tokens(struct tec_lower *l, int x, const int *ids, const int *n, int max_rows,
                      const int *first, float scale);

/* Has the prefix table room for pictures, and for how many? These as rows of x from row `at` on. */
bool tec_lower_sees(const struct tec_lower *l);
int tec_lower_most_pictures(const struct tec_lower *l);
void tec_lower_pictures(struct tec_lower *l, int x, int at);

/* The angles of rows of pictures, which have three positions, behind those of the text's rows;
 * nothing where positions are one number. */
void tec_lower_turns(struct tec_lower *l);
/* The tensor that who reads `cos_sin` waits for; -1 = none. */
int tec_lower_angles(struct tec_lower *l, const float *cos_sin);

/* The next token of each row of the decode table from its last hidden state in h, and what a step
 * notes of it. */
void tec_lower_next_tokens(struct tec_lower *l, int h);

/* A ring's forward: the prefill of one sequence and a row of each other, a next token of all. */
void tec_lower_packed(struct tec_lower *l);

/* Texts to one vector each. */
struct tec_encoding {
    const struct tec_encode_table *table; /* device side */
    int max_texts;
    bool unit;     /* vectors of length 1 */
    float *out;    /* device memory [max_texts, padded width] */
    float **units; /* of tec_reading: [n_units] device memory, as many slots as there are rows */
    int n_units;
};
void tec_lower_encode(struct tec_lower *l, const struct tec_encoding *e);

/* Keys or values from slots to slots, as the moves say; and those of all layers, as a part. */
void tec_lower_move(struct tec_lower *l, const struct tec_moves *moves, int from, int to,
                    const char *label);
void tec_lower_shift(struct tec_lower *l);

/* The tokens of the rows as a new tensor. */
int tec_lower_embed(struct tec_lower *l, const struct tec_rows *rows, const int *token);

/* The table of angles of an attention; NULL where nothing is rotated. */
const float *tec_lower_rotation(const struct tec_lower *l, const struct tec_attend *attend);

/* The factor of an attention's scores. */
float tec_lower_scale(const struct tec_attend *attend);

/* Bend logits below the model's cap, where it has one, in place. */
void tec_lower_cap(struct tec_lower *l, int logits);

/* y = x W^T + bias as a new tensor of the matrix's padded width. */
int tec_lower_linear(struct tec_lower *l, const struct tec_matrix *m, int x, const char *label);

/* The listed rows of x as a new tensor; `row` [rows->max] in device memory. */
int tec_lower_take(struct tec_lower *l, const struct tec_rows *rows, const int *row, int x,
                   const char *label);

/* y[row ..] = x. */
void tec_lower_copy(struct tec_lower *l, int x, int y, int row, const char *label);

/* Numbers in device memory that never change, [rows, cols padded to 16], as a tensor that is only
 * read. */
int tec_lower_constant(struct tec_lower *l, const float *at, int rows, int cols, const int *live);

/* The gate of a linear's output: rows below *fixed are multiplied by `clean`, others by `at`. */
struct tec_gate {
    const float *at, *clean;
    const int *fixed; /* NULL = all take `at` */
};

/* y[out_row ..] = gate * (x[in_row ..] W^T + bias) for *rows rows, at most max_rows; `add`: added
 * to y. */
struct tec_part_rows {
    const int *rows;
    int max_rows, in_row, out_row;
    const struct tec_gate *gate; /* NULL = 1 */
};
void tec_lower_linear_rows(struct tec_lower *l, const struct tec_matrix *m, int x, int y,
                           const struct tec_part_rows *part, bool add, const char *label);

/* y = windows of x W^T + bias, of matrices in float32 and not on a GPU; `add`: added to y, which is
 * not x. What `windows` says of columns and the width of y is found out. */
void tec_lower_linear_windows(struct tec_lower *l, const struct tec_matrix *m, int x, int y,
                              const struct tec_windows *windows, bool add, const char *label);

/* x[r] += table[r], r < rows: what positions add to the output of a linear; nothing for NULL. */
void tec_lower_position(struct tec_lower *l, int x, const float *table, int rows);

/* y = f(x), in place where x is y; rounded where it enters a GEMM. */
void tec_lower_activation(struct tec_lower *l, enum tec_activation f, int x, int y);

/* The same, and never rounded: a residual may be read of it. */
void tec_lower_map(struct tec_lower *l, enum tec_activation f, int x, int y);

/* y[out_row ..] (+)= gate * (x W^T + bias) into a tensor there is; gate NULL = 1. */
void tec_lower_linear_into(struct tec_lower *l, const struct tec_matrix *m, int x, int y,
                           int out_row, const struct tec_gate *gate, bool add, const char *label);

/* Keep a copy of a tensor (its first `cols` columns from `at` on) under a printf-style name;
 * nothing when there are no taps. */
void tec_lower_tap(struct tec_lower *l, int tensor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* More names for columns of the last tap. */
void tec_lower_tap_view(struct tec_lower *l, int at, int cols, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Keep the keys in the rows' slots of one layer. */
void tec_lower_tap_keys(struct tec_lower *l, const struct tec_attending *a, int keys,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

void tec_taps_finish(struct tec_taps *taps, struct tec_device *device);

#endif
