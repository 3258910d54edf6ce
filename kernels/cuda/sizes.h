/* sizes.h - what launchers and the model of kernels (kernels/grids.h) count with; plain C. */
#ifndef TEC_KERNELS_CUDA_SIZES_H
#define TEC_KERNELS_CUDA_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define TEC_ANYWHERE __host__ __device__
#else
#define TEC_ANYWHERE
#endif

/* What kernels of a stream share: counters, bytes of partial sums, bytes of the terms or digits of
 * rows, bytes of the sums of squares that one product leaves for the next. */
enum {
    TEC_CUDA_TICKETS = 4096,
    TEC_CUDA_PARTIALS = 32 << 20,
    TEC_CUDA_TERMS = 64 << 20,
    TEC_CUDA_SQUARES = 256 << 10 /* 64 rows of 16384 columns */
};

/* Blocks of a cluster: as many as every device that has clusters allows, and the most of any. */
enum {
    TEC_CUDA_PORTABLE = 8,
    TEC_CUDA_CLUSTER = 16,
    TEC_CUDA_CLUSTERS = 0x1fffe /* of tec_cuda_facts: every size finds room, as on a whole H100 */
};

/* What of a device, and of the memory that its kernels share, a choice depends on. */
struct tec_cuda_facts {
    int capability;       /* 10 * major + minor */
    int processors;       /* multiprocessors */
    bool groups;          /* products by warp groups */
    size_t partials_size; /* bytes for partial sums; 0: there is no such memory */
    size_t terms_size;    /* bytes for the terms of rows, or their digits */
    size_t squares_size;  /* bytes for sums of squares */
    unsigned clusters;    /* bit n: clusters of n blocks of products by warp groups find room */
};

static TEC_ANYWHERE inline int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* Whether every row begins at a multiple of `bytes`; `stride` in bytes. */
static inline bool rows_aligned(const void *at, size_t stride, size_t bytes)
{
    return ((uintptr_t)at | stride) % bytes == 0;
}

/* The same for rows of floats that are moved as four. */
static inline bool floats_aligned(const float *at, int ld)
{
    return rows_aligned(at, (size_t)ld * sizeof(float), 4 * sizeof(float));
}

#endif
