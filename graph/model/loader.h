/* loader.h - between the files of graph/model that load weights: what one load works with. */
#ifndef TEC_GRAPH_MODEL_LOADER_H
#define TEC_GRAPH_MODEL_LOADER_H

#include "graph/model/packer.h"
#include "graph/model/weights.h"

struct tec_loader {
    struct tec_weights *out;
    const struct tec_weights_options *options;
    struct tec_weight_source source;
    struct tec_packer packer;
    const struct tec_packing *packing; /* of the layers that are loaded; NULL = plain matrices */
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

/* Device memory that the weights own. TEC_NO_MEMORY says how much there is already. */
enum tec_status tec_loader_block(struct tec_loader *l, size_t size, void **block);

/* A buffer of at least n floats; what was in it is lost. A dry run reads nothing. */
enum tec_status tec_loader_reserve(struct tec_loader *l, int64_t n);

/* k that share a scale in a packed layer. */
int tec_loader_group(const struct tec_loader *l, int k);

/* Bytes of a layer's matrix, packed or plain. */
size_t tec_loader_size(const struct tec_loader *l, int rows, int k, bool bf16);

/* Pieces of 4-bit weights of inner length k to m, whose memory is there; at[i] is the first column
 * of piece i, `bias` the memory behind m->bias. */
enum tec_status tec_load_packed(struct tec_loader *l, const struct tec_piece *pieces, int n, int k,
                                const int *at, struct tec_matrix *m, float *bias);

#endif
