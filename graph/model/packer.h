/* packer.h - a model's matrices on their way to a device: made, packed and uploaded in chunks of
 * rows that several threads take at once. What is packed does not depend on how many there are. */
#ifndef TEC_GRAPH_MODEL_PACKER_H
#define TEC_GRAPH_MODEL_PACKER_H

#include "graph/model/source.h"
#include "graph/model/weights.h"
#include "kernels/device.h"
#include "kernels/team.h"

enum { TEC_PACKER_LANES = 16 };

/* Columns from .. from + cols - 1 of every row; `form` is the packed one. Before, where
 * `turn` is not 0, columns that are stored as [turn, all / turn] become [all / turn, turn]. */
struct tec_packed_columns {
    int from, cols;
    enum tec_form form;
    int turn;
};

/* Bytes of a matrix that is packed so. */
size_t tec_packed_size(enum tec_matrix_layout layout, enum tec_form form, int rows, int k);

struct tec_packer_lane {
    float *rows;  /* [room] as read */
    void *packed; /* one chunk; NULL where the device reads host memory */
    size_t rows_room, packed_room;
    enum tec_status status;
    struct tec_error err;
};

struct tec_packer {
    struct tec_weight_source source;
    struct tec_device *device;
    struct tec_heap *heap;
    struct tec_team *team; /* made when a matrix is worth it */
    struct tec_packer_lane lanes[TEC_PACKER_LANES];
};

/* Takes nothing yet. The device and what the source names are borrowed until close. */
void tec_packer_open(struct tec_packer *packer, const struct tec_weight_source *source,
                     struct tec_device *device, struct tec_heap *heap);
void tec_packer_close(struct tec_packer *packer);

/* The columns of a row [n] turned so; `spare` [n]. */
void tec_packer_turn(float *row, int64_t n, int turn, float *spare);

/* Threads for a matrix of so many values, or NULL: one does it all. They are the packer's. */
struct tec_team *tec_packer_team(struct tec_packer *packer, int64_t values);

/* All rows of `found`, packed in the device's layout, to `to`: device memory of tec_packed_size
 * bytes, zeroed. The errors of tec_weight_rows, or TEC_NO_MEMORY. A dry source does nothing. */
enum tec_status tec_packer_rows(struct tec_packer *packer, const struct tec_found *found,
                                struct tec_packed_columns columns, void *to, struct tec_error *err);

#endif
