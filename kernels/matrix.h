/* matrix.h - the stored form of a weight matrix, one copy per (dtype, layout).
 *
 * W is [rows, k] as checkpoints store it: output column c of a product is row c of W. Rows are
 * padded with zeros to a multiple of 16.
 *   TEC_MATRIX_ROWS    [rows16][tec_matrix_stride(k)], plain; bf16 rows are padded to whole pairs.
 *   TEC_MATRIX_PANELS  panels of 16 rows: f32 [panel][k][16]; bf16 [panel][k / 2 rounded
 * up][16][2], the two k of a pair side by side (a missing last k is zero), so that one 64-byte line
 * holds 16 columns x 2 k, the form that tile units read too.
 *   TEC_MATRIX_TILES   for tensor cores: f32 as TEC_MATRIX_ROWS; bf16 [panel][k / 16 rounded up][4]
 * [8][8]. A block of 16 rows x 16 k is four matrices of 8 x 8, row-major, in the order in which a
 * multiply takes its registers: rows 0-7 k 0-7, rows 8-15 k 0-7, rows 0-7 k 8-15, rows 8-15 k 8-15
 * (missing k are zero). A block is 512 bytes in one piece, each 8 x 8 one line of shared memory.
 * Several matrices that share their
 * input (q | k | v, gate | up) are joined by packing them one after the other: each begins at a
 * panel border, so joined and separate reads see the same bytes. */
#ifndef TEC_KERNELS_MATRIX_H
#define TEC_KERNELS_MATRIX_H

#include "kernels/kernels.h"

#include <stddef.h>

/* rows rounded up to whole panels. */
static inline int tec_padded(int rows)
{
    return (rows + 15) / 16 * 16;
}

/* Blocks of 16 k in a row of TEC_MATRIX_TILES. */
static inline int tec_matrix_blocks(int k)
{
    return (k + 15) / 16;
}

/* Elements from one row to the next in TEC_MATRIX_ROWS: k, for bf16 rounded up to even, so that
 * rows and panels take the same bytes and joined matrices begin at the same place. */
static inline size_t tec_matrix_stride(int k, bool bf16)
{
    return bf16 ? ((size_t)k + 1) / 2 * 2 : (size_t)k;
}

/* Bytes of a packed matrix; always a multiple of 64. `bf16` chooses 2 or 4 bytes a weight. */
size_t tec_matrix_size(enum tec_matrix_layout layout, bool bf16, int rows, int k);

/* Pack rows first .. first + n - 1 (given as float32 [n, k], n a multiple of 16 or the last rows)
 * of a matrix of `rows` rows into `packed` (tec_matrix_size bytes, zeroed by the caller). first is
 * a multiple of 16. bf16 rounds to nearest even. */
void tec_matrix_pack(void *packed, enum tec_matrix_layout layout, bool bf16, int rows, int k,
                     int first, int n, const float *src);

#endif
