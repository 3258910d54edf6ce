/* weights.h - a model's tensors on a device, packed as its kernels read them; one copy each.
 * Immutable and shareable after load; captures hold its addresses, so nothing ever moves. */
#ifndef TEC_GRAPH_MODEL_WEIGHTS_H
#define TEC_GRAPH_MODEL_WEIGHTS_H

#include "graph/model/model.h"
#include "graph/model/source.h"
#include "kernels/device.h"

/* How a matrix is kept: in float32, either because the plan computes so or because the layer is one
 * of the small exact ones; rounded to bf16; in 8 bits with a scale for each column; in 4 bits with
 * a scale and a zero for each group of k of a column; or, of a convolution, in float32 with a
 * matrix for each point (kernels/conv.h). */
enum tec_form { TEC_FORM_F32, TEC_FORM_BF16, TEC_FORM_INT8, TEC_FORM_INT4, TEC_FORM_POINTS };

/* What matrices of a model are rounded to while they are loaded: those of layers that a bf16 plan
 * rounds, or the head. Neither the embedding nor convolutions. */
enum tec_quantize { TEC_QUANTIZE_NONE, TEC_QUANTIZE_INT8, TEC_QUANTIZE_INT4 };

/* What products may read of activations: all of them; as two bf16 terms; as one, but as two what
 * queries, keys and values are made of and most of a tower (spares of struct tec_lower); as one,
 * with what lies between products rounded, too; beside 8-bit weights one digit of 8 bits. */
enum tec_round {
    TEC_ROUND_NONE,
    TEC_ROUND_BF16X2,
    TEC_ROUND_MIXED,
    TEC_ROUND_BF16,
    TEC_ROUND_INT8
};

/* A packed matrix: y = x W^T + bias. */
struct tec_matrix {
    void *w;
    const float *bias; /* [n] or NULL */
    int n, k;          /* stored columns (padded to 16), inner length */
    int cols;          /* real columns */
    enum tec_form form;
    int group;           /* of 4-bit weights: so many k share a scale (kernels/int4.h); else 0 */
    const int *order;    /* of them: columns of x by packed k; NULL = as they are */
    const int *order_of; /* which order a panel has; or NULL */
};

/* The projections of an attention. q | k | v are joined at panel borders: x_at is the first column.
 * Where keys are of other rows, qkv is q, and cross_kv is k | v; where they are projections of a
 * text's, projected are those of keys and of values. */
struct tec_attention_weights {
    struct tec_matrix qkv, kv, cross_kv; /* kv is the k | v part of qkv, not a copy */
    struct tec_matrix projected[2];      /* float32 */
    int q_at, k_at, v_at;                /* columns in qkv's output */
    int cross_v_at;
    const float *q_norm, *k_norm; /* [head_dim] of each head before it is rotated, or NULL */
    /* What positions add to the outputs of qkv and cross_kv: [positions, n], or NULL. */
    const float *shift, *cross_kv_shift;
};

/* What a call of a program has: a matrix, a constant, a norm's vectors, or an attention. */
struct tec_call_weights {
    struct tec_matrix matrix;
    struct tec_matrix beside; /* of two towers beside each other: the columns of the second one */
    const float *norm, *norm_bias;
    const float *factor;   /* [n] of the columns of the matrix's product, or NULL */
    const float *constant; /* [rows, ld]; of constants that a frame reads, or a tap. Of a tower's
                            * grid the rows of every slot where these differ in size; of rows in
                            * front of patches as often as there may be pictures */
    const struct tec_attention_weights *attention;
    const float *bias; /* attention: [heads, 2 * reach + 1] by the distance of key and query, or
                        * NULL */
    int reach;
};

struct tec_weights {
    struct tec_call_weights *towers[TEC_MAX_TOWERS], *project; /* of their programs, by call */
    struct tec_call_weights *text;  /* of the program of the text, by call */
    struct tec_call_weights *state; /* of what makes a row of the state, by call */
    struct tec_call_weights *calls; /* of the program of prefill and action, by call */
    struct tec_matrix embed, head;  /* equal when tied and the head is not rounded */
    const float *position, *types;  /* [rows, ld] added to embedding rows; NULL = none */
    int ld;
    bool bf16;
    int64_t bytes; /* device memory held */
    struct tec_device *device;
    struct tec_arena arena;
    /* Its memory, block by block: the device's to give back, or where the device reads host memory
     * parts of `kept`. */
    void **blocks;
    size_t *sizes; /* [n_blocks] */
    int n_blocks, block_room;
    bool tied;               /* head and embedding have the same values */
    bool packed;             /* some matrix is of 8-bit or 4-bit weights */
    struct tec_blocks *kept; /* the mapped file that they came from; NULL: a checkpoint's */
};

/* Where packed weights are kept in a file between starts (weight_cache.h). */
struct tec_weight_cache {
    bool written;        /* a file is made where there is none that fits; false: none is */
    const char *folder;  /* NULL: beside the checkpoint, or where that cannot be written to: */
    const char *user;    /* the user's folder for caches, made when it is missing; NULL = none */
    const char *program; /* its version: files of other versions are made again */
    void (*say)(void *self, const char *line); /* what became of the file; or NULL */
    int *fits; /* counted up for a file that was found or made and fits; or NULL */
    void *self;
};

struct tec_weights_options {
    const struct tec_model *model;
    struct tec_weight_source source;
    struct tec_device *device;            /* borrowed until close */
    bool bf16;                            /* dtype of the matrices of layers and of the embedding */
    enum tec_quantize quantize;           /* of the layers' matrices */
    enum tec_quantize quantize_head;      /* TEC_QUANTIZE_INT8: beside a tied embedding; or NONE */
    bool language;                        /* false: the head is not needed */
    int prompts;                          /* whose pictures go through the towers at once; 0 = 1 */
    const struct tec_weight_cache *cache; /* NULL: none is looked for. Of checkpoints alone */
    void (*progress)(void *user, int64_t bytes); /* NULL or called now and then */
    void *user;
};

/* Read every tensor through a small buffer and pack it to its place; or map the file that an
 * earlier start has kept, which has the same bytes. TEC_NO_MEMORY says how much was asked for.
 * Close with tec_weights_close. */
enum tec_status tec_weights_load(struct tec_weights **out,
                                 const struct tec_weights_options *options, struct tec_heap *heap,
                                 struct tec_error *err);
void tec_weights_close(struct tec_weights *weights); /* NULL is allowed */

#endif
