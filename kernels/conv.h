/* conv.h - convolutions of 3 x 3 pixels by squares of four windows: what is transformed, and how
 * weights are stored. S. Winograd's minimal filtering, F(2 x 2, 3 x 3): Lavin and Gray, "Fast
 * Algorithms for Convolutional Neural Networks", 2016, section 4.1.
 *
 * A square has 4 x 4 pixels d and 2 x 2 windows Y = A^T ((G g G^T) * (B^T d B)) A, where g are the
 * weights [3, 3] of two channels and * multiplies point by point:
 *
 *         1  0 -1  0           1    0    0
 *   B^T = 0  1  1  0       G = 1/2  1/2  1/2     A^T = 1  1  1  0
 *         0 -1  1  0           1/2 -1/2  1/2           0  1 -1 -1
 *         0  1  0 -1           0    0    1
 *
 * So a channel of a square takes 16 products for the 36 of its windows. Sums over channels are made
 * between the transforms, point by point: they are products of matrices. */
#ifndef TEC_KERNELS_CONV_H
#define TEC_KERNELS_CONV_H

#include "kernels/matrix.h"

enum { TEC_CONV_SIDE = 4, TEC_CONV_POINTS = TEC_CONV_SIDE * TEC_CONV_SIDE };

/* Squares along one side of `n` windows. */
static inline int tec_conv_squares(int n)
{
    return (n + 1) / 2;
}

/* Bytes of the packed weights: a matrix of tec_matrix_size for each point, one after the other. */
size_t tec_conv_size(enum tec_matrix_layout layout, int rows, int k);

/* Transforms weights w [rows, 3, 3, k], row r times scale[r] (NULL = 1), in float64, rounds each
 * value once and packs the matrices into `packed` (tec_conv_size bytes, zeroed by the caller).
 * `room` has place for rows x k floats. */
void tec_conv_pack(void *packed, enum tec_matrix_layout layout, int rows, int k, const float *w,
                   const double *scale, float *room);

#endif
