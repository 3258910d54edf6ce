/* row_digits_room.h - how rows of x lie as signed digits of 8 bits in device memory, and how many
 * fit; plain C. */
#ifndef TEC_KERNELS_CUDA_ROW_DIGITS_ROOM_H
#define TEC_KERNELS_CUDA_ROW_DIGITS_ROOM_H

#include "kernels/cuda/sizes.h"

/* Every group of k has whole steps of DIGITS_K, padded with zeros, the last group of a row as many
 * as the others. Of a step 8 rows stand together: for each digit, the highest first, two blocks of
 * 8 rows by 16 k, 128 bytes each and row-major. So do DIGITS_ROWS rows, then come their next steps,
 * then the next rows:
 *
 *     [row / DIGITS_ROWS][step of the row][row % DIGITS_ROWS / 8][digit][k % 32 / 16][8][16]
 *
 * Behind the digits of all rows are their units, float32, NaN where some x of the group is not
 * finite: [row / DIGITS_ROWS][group][row % DIGITS_ROWS]. */
enum { DIGITS_K = 32, DIGITS_ROWS = 64, DIGITS_EIGHT = 8 * DIGITS_K };

/* Of a row: its k, how many of them share a unit, digits of each (1: a unit of int8.h that is no
 * power of two; 2 and 3: the powers of two of int8.h and int4.h). */
struct tec_cuda_digits {
    int k, group, digits;
};

static TEC_ANYWHERE inline int tec_cuda_digits_groups(const struct tec_cuda_digits *d)
{
    return ceil_div(d->k, d->group);
}

/* Steps of a group. */
static TEC_ANYWHERE inline int tec_cuda_digits_steps(const struct tec_cuda_digits *d)
{
    return ceil_div(d->group, (int)DIGITS_K);
}

/* Bytes of the digits of DIGITS_ROWS rows in one group. */
static TEC_ANYWHERE inline size_t tec_cuda_digits_piece(const struct tec_cuda_digits *d)
{
    return (size_t)tec_cuda_digits_steps(d) * (size_t)d->digits * DIGITS_K * DIGITS_ROWS;
}

/* Where the units are behind the digits of so many rows: bytes. */
static TEC_ANYWHERE inline size_t tec_cuda_digits_units(const struct tec_cuda_digits *d, int rows)
{
    return (size_t)ceil_div(rows, (int)DIGITS_ROWS) * (size_t)tec_cuda_digits_groups(d) *
           tec_cuda_digits_piece(d);
}

/* Rows that fit into `size` bytes with their units, a multiple of DIGITS_ROWS. */
static inline int tec_cuda_digits_room(size_t size, const struct tec_cuda_digits *d)
{
    size_t group = tec_cuda_digits_piece(d) + DIGITS_ROWS * sizeof(float);
    return (int)(size / ((size_t)tec_cuda_digits_groups(d) * group)) * DIGITS_ROWS;
}

/* How row_digits is started: a warp has 8 rows and as many groups at once as are four steps. */
enum { DIGITS_WARPS = 4, DIGITS_LANES = 4 };

/* Lanes that share a group of a row: one for each step, at most DIGITS_LANES. */
static TEC_ANYWHERE inline int tec_cuda_digits_lanes(const struct tec_cuda_digits *d)
{
    int steps = tec_cuda_digits_steps(d);
    return steps > 2 ? DIGITS_LANES : steps;
}

/* Blocks along the groups of a row. */
static inline int tec_cuda_digits_blocks(const struct tec_cuda_digits *d)
{
    return ceil_div(tec_cuda_digits_groups(d) * tec_cuda_digits_lanes(d),
                    DIGITS_WARPS * DIGITS_LANES);
}

#endif
