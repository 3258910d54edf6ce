/* int4.h - matrices of 4-bit weights from the layouts that are published to the one of the kernels.
 * Every number of a file is checked: a group index that points outside is an error, not a read. */
#ifndef TEC_GRAPH_MODEL_INT4_H
#define TEC_GRAPH_MODEL_INT4_H

#include "graph/model/source.h"
#include "kernels/team.h"

/* One published matrix: rows output columns, k inputs, rows and k multiples of 8. */
struct tec_int4_piece {
    const char *name; /* "....weight" */
    const struct tec_packing *packing;
    int rows, k, group; /* group: 8 .. k */
};

/* Orders of k of the pieces of a joined matrix. */
struct tec_orders {
    int *order; /* [pieces, k]: packed j is column order[j] of the input */
    int *panel; /* [panels] the piece that a panel is of */
    int piece;  /* the one that is read now */
};

/* Read one to `to`, zeroed memory of tec_int4_size(padded rows, k, group) bytes, and its order to
 * orders->order[piece]. Lanes of `team` (NULL: the caller) make panels of their own. Random values
 * where the source has no checkpoint. TEC_NOT_FOUND, TEC_SHAPE, TEC_MALFORMED: the message names
 * tensor and place. */
enum tec_status tec_packed_read(const struct tec_weight_source *source,
                                const struct tec_int4_piece *piece, unsigned char *to,
                                const struct tec_orders *orders, struct tec_team *team,
                                struct tec_heap *heap, struct tec_error *err);

#endif
