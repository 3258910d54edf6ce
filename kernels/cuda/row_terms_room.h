/* row_terms_room.h - how rows of x lie as bf16 terms in device memory, and how many fit; plain C.
 */
#ifndef TEC_KERNELS_CUDA_ROW_TERMS_ROOM_H
#define TEC_KERNELS_CUDA_ROW_TERMS_ROOM_H

#include <stddef.h>

/* A piece is 8 rows by TERMS_K columns: for each term 8 blocks of 8 x 8 values, 128 bytes each and
 * row-major, the nearest bf16 of the values before what remains of them. Pieces of TERMS_ROWS rows
 * stand together, then come the next TERMS_K columns of these rows, then the next rows:
 *
 *     [row / TERMS_ROWS][column / TERMS_K][row % TERMS_ROWS / 8][term][column % TERMS_K / 8][8][8]
 */
enum { TERMS_K = 64, TERMS_ROWS = 64, TERM_BYTES = 8 * TERMS_K * 2, PIECES = TERMS_ROWS / 8 };

/* Bytes of TERMS_ROWS rows of k columns. */
static inline size_t tec_cuda_terms_size(int terms, int k)
{
    size_t columns = (size_t)((k + TERMS_K - 1) / TERMS_K);
    return columns * (size_t)terms * TERM_BYTES * PIECES;
}

/* Rows of k columns that fit into `size` bytes, a multiple of TERMS_ROWS. */
static inline int tec_cuda_terms_room(size_t size, int terms, int k)
{
    return (int)(size / tec_cuda_terms_size(terms, k)) * TERMS_ROWS;
}

#endif
