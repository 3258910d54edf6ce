/* conv.c - weights of convolutions, transformed and packed. */
#include "kernels/conv.h"

/* G. */
static const double to_points[TEC_CONV_SIDE][3] = {
    {1.0, 0.0, 0.0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0.0, 0.0, 1.0}};

/* Point `point` of a channel's weights, which lie `step` apart. */
static double at_point(const float *w, size_t step, int point)
{
    const double *down = to_points[point / TEC_CONV_SIDE];
    const double *across = to_points[point % TEC_CONV_SIDE];
    double sum = 0.0;
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            sum += down[i] * across[j] * (double)w[(i * 3 + j) * step];
    return sum;
}

size_t tec_conv_size(enum tec_matrix_layout layout, int rows, int k)
{
    return TEC_CONV_POINTS * tec_matrix_size(layout, false, rows, k);
}

void tec_conv_pack(void *packed, enum tec_matrix_layout layout, int rows, int k, const float *w,
                   const double *scale, float *room)
{
    size_t size = tec_matrix_size(layout, false, rows, k), step = (size_t)k;
    for (int point = 0; point < TEC_CONV_POINTS; point++) {
        for (size_t r = 0; r < (size_t)rows; r++)
            for (size_t c = 0; c < step; c++)
                room[r * step + c] =
                    (float)((scale ? scale[r] : 1.0) * at_point(w + r * 9 * step + c, step, point));
        tec_matrix_pack((char *)packed + (size_t)point * size, layout, false, rows, k, 0, rows,
                        room);
    }
}
