/* row_grid.h - blocks of kernels that treat rows and columns alone; plain C. */
#ifndef TEC_KERNELS_CUDA_ROW_GRID_H
#define TEC_KERNELS_CUDA_ROW_GRID_H

#include "kernels/cuda/sizes.h"

/* Threads of a block that treats columns alone, four columns each. Its grid has rows along x. */
enum { ROW_THREADS = 128, QUAD = 4, ROW_COLUMNS = ROW_THREADS * QUAD };

/* A norm has a block for each row; a thread takes quads of columns in turns. */
enum { NORM_THREADS = 256 };

static TEC_ANYWHERE inline int norm_threads(int cols)
{
    int threads = 32;
    while (threads * QUAD < cols && threads < NORM_THREADS)
        threads *= 2;
    return threads;
}

#endif
