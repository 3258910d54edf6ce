/* loading.h - between the files of graph/model: tensors read through one small buffer, packed, and
 * put into device memory that `out` keeps. */
#ifndef TEC_GRAPH_MODEL_LOADING_H
#define TEC_GRAPH_MODEL_LOADING_H

#include "base/store/blocks.h"
#include "graph/model/packer.h"
#include "graph/model/program.h"
#include "graph/model/weights.h"

struct tec_weight_loading {
    struct tec_weights *out;
    const struct tec_weights_options *options;
    struct tec_weight_source source;
    struct tec_packer packer;
    const struct tec_packing *packing; /* of the call that is loaded; NULL = plain matrices */
    const struct tec_blocks *kept;     /* blocks come from here, the source is dry; or NULL */
    bool kept_tied;                    /* of them: tec_weights.tied */
    float *buffer;                     /* [buffer_floats] as read; NULL in a dry run */
    int64_t buffer_floats;
    struct tec_heap *heap;
    struct tec_error *err;
};

/* One of the matrices that share an input and are packed one after the other. */
struct tec_piece {
    const char *weight, *bias;
    int rows;
    int first; /* where one tensor holds several: its first row */
};

/* Device memory that the weights hold from now on. */
enum tec_status tec_weight_loading_block(struct tec_weight_loading *l, size_t size, void **block);

/* A buffer of at least n floats; what was in it is lost. A dry run reads nothing. */
enum tec_status tec_weight_loading_reserve(struct tec_weight_loading *l, int64_t n);

/* A vector [n] in device memory; NULL where there is no name. */
enum tec_status tec_weight_loading_vector(struct tec_weight_loading *l, const char *name, int n,
                                          float centre, const float **out);

/* The form of a matrix of inner length k that a bf16 plan rounds (`rounded`), or of one that it
 * does not. */
enum tec_form tec_weight_loading_form(const struct tec_weight_loading *l, bool rounded, int k);

/* Bytes of a packed matrix. */
size_t tec_weight_loading_size(const struct tec_weight_loading *l, int rows, int k,
                               enum tec_form form);

/* A matrix without bias, and device memory for it. */
enum tec_status tec_weight_loading_matrix(struct tec_weight_loading *l, int rows, int k,
                                          enum tec_form form, struct tec_matrix *m);

/* All rows of `found` to `to`, or as a new matrix; `turn` as of tec_packed_columns. */
enum tec_status tec_weight_loading_pack(struct tec_weight_loading *l, const struct tec_found *found,
                                        void *to, struct tec_packed_columns columns);
enum tec_status tec_weight_loading_found(struct tec_weight_loading *l,
                                         const struct tec_found *found, int turn,
                                         enum tec_form form, struct tec_matrix *m);

/* Joined matrices of inner length k; at[i] is the first column of piece i. `total` > 0: they are
 * rows of one tensor that has so many. */
enum tec_status tec_weight_loading_pieces(struct tec_weight_loading *l,
                                          const struct tec_piece *pieces, int n, int k, int total,
                                          enum tec_form form, struct tec_matrix *m, int *at);

/* k of a matrix of 4-bit weights that share a scale. */
int tec_weight_loading_group(const struct tec_weight_loading *l, int k);

/* Pieces of 4-bit weights of inner length k to m, whose memory is there; `bias` is the memory
 * behind m->bias. */
enum tec_status tec_weight_loading_packed(struct tec_weight_loading *l,
                                          const struct tec_piece *pieces, int n, int k,
                                          const int *at, struct tec_matrix *m, float *bias);

/* A dense layer; nothing where it has no name. */
enum tec_status tec_weight_loading_dense(struct tec_weight_loading *l, const struct tec_dense *d,
                                         enum tec_form form, struct tec_matrix *m);

/* Loads the biases of scores by distance of a call of attention, and the rows added to embeddings.
 * Does nothing where there are none. */
enum tec_status tec_weight_loading_relative(struct tec_weight_loading *l,
                                            const struct tec_model_call *call,
                                            struct tec_call_weights *w);
enum tec_status tec_weight_loading_sums(struct tec_weight_loading *l, const struct tec_text *t);

/* Of a tower: the convolution of its patches; rows of its grid in host memory, `out`
 * [tec_weight_loading_patches, columns]; how many they are, in device memory of constants that
 * stand in front of patches as often as there may be pictures. */
enum tec_status tec_weight_loading_patch_conv(struct tec_weight_loading *l,
                                              const struct tec_model_call *call,
                                              struct tec_matrix *m);
enum tec_status tec_weight_loading_grid(struct tec_weight_loading *l,
                                        const struct tec_model_call *call, float *out);
int tec_weight_loading_patches(const struct tec_weight_loading *l,
                               const struct tec_model_program *program, int call);
int tec_weight_loading_copies(const struct tec_weight_loading *l,
                              const struct tec_model_program *program, int call);

/* A product of columns that lie in another order than they are stored in; of those of two towers
 * beside each other; a vector of a norm of such columns. */
enum tec_status tec_weight_loading_turned(struct tec_weight_loading *l,
                                          const struct tec_model_call *call, int k, int turn,
                                          struct tec_matrix *m);
enum tec_status tec_weight_loading_beside(struct tec_weight_loading *l,
                                          const struct tec_model_program *program,
                                          const struct tec_model_call *call,
                                          struct tec_call_weights *w);
enum tec_status tec_weight_loading_turned_vector(struct tec_weight_loading *l, const char *name,
                                                 int n, float centre, int turn, const float **out);

/* The number that rows of a product are multiplied by, once for each column. */
enum tec_status tec_weight_loading_times(struct tec_weight_loading *l, double times, int cols,
                                         const float **out);

/* A call's convolution of `in` channels: its norm folded in, columns in the order of windows. */
enum tec_status tec_weight_loading_conv(struct tec_weight_loading *l,
                                        const struct tec_model_call *call, int in,
                                        struct tec_matrix *m);

/* The weights of every call of a program, *out by call, and what positions add to queries and keys.
 */
enum tec_status tec_weight_loading_program(struct tec_weight_loading *l,
                                           const struct tec_model_program *program,
                                           struct tec_call_weights **out);

/* The first k columns of a dense layer's matrix, without its bias. */
enum tec_status tec_weight_loading_columns(struct tec_weight_loading *l, const struct tec_dense *d,
                                           int k, enum tec_form form, struct tec_matrix *m);

/* The matrix of a call of linear: where rows of the time are read beside others, the columns that
 * read those, without the bias. */
enum tec_status tec_weight_loading_product(struct tec_weight_loading *l,
                                           const struct tec_model_program *program,
                                           const struct tec_model_call *call, struct tec_matrix *m);

/* The two matrices of a call of gated over rows of `width` columns, joined. */
enum tec_status tec_weight_loading_gated(struct tec_weight_loading *l,
                                         const struct tec_model_call *call, int width,
                                         struct tec_matrix *m);

/* The projections of a call of attention, without what positions add. */
enum tec_status tec_weight_loading_attention(struct tec_weight_loading *l,
                                             const struct tec_model_program *program,
                                             const struct tec_model_call *call,
                                             struct tec_attention_weights *w);

#endif
