/* launch.h - how a kernel of this tier is started: what the device gives to every launcher.
 *
 * A launcher puts one kernel (or a few) on a stream with the argument struct of kernels/args.h; it
 * never waits, allocates or copies. Most streams are being captured. Launchers run at load only;
 * what a replay repeats is the graph. */
#ifndef TEC_KERNELS_CUDA_LAUNCH_H
#define TEC_KERNELS_CUDA_LAUNCH_H

#include "kernels/args.h"
#include "kernels/cuda/sizes.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows as bf16 terms, or as digits of 8 bits, in device memory, in place of float32: chain_terms.h.
 */
struct tec_cuda_terms {
    const float *of; /* where they are not as float32; NULL: there are none */
    unsigned char *at;
    int terms, k;
    int digits, rows; /* digits of each number, of so many rows; 0: bf16 terms */
};

/* Facts of the device and memory that kernels share. One for each stream. */
struct tec_cuda_launch {
    cudaStream_t stream;
    int capability;       /* 10 * major + minor */
    int processors;       /* multiprocessors */
    bool overlap;         /* kernels may begin before the one in front has ended: lang.cuh */
    bool groups;          /* products by warp groups: on 9.0, where there is code for sm_90a */
    unsigned clusters;    /* bit n: n blocks of such a product run at the same time (clusters.c) */
    bool first;           /* no kernel is in front of the next one; start clears it */
    float *partials;      /* device memory for partial sums, one user at a time in stream order */
    size_t partials_size; /* bytes */
    unsigned char *terms; /* device memory for the terms of rows (row_terms.h), or for their digits
                             (row_digits.h), one user at a time */
    size_t terms_size;    /* bytes */
    float *squares;       /* device memory: sums of squares of rows, from one product to the next */
    size_t squares_size;  /* bytes */
    bool left;            /* `squares` has those of the rows of the norm that is started */
    struct tec_cuda_terms ready; /* x of the next kernel, which must take it (row_terms.h) */
    struct tec_cuda_terms leave; /* what the next kernel makes: it must leave it so */
    int *tickets;                /* TEC_CUDA_TICKETS counters; 0 between kernels */
    int kernels;                 /* launched so far */
    cudaError_t error;           /* the first failure; once set, nothing more is launched */
};

/* What a choice depends on. */
static inline struct tec_cuda_facts tec_cuda_facts_of(const struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts f = {
        launch->capability, launch->processors,
        launch->groups,     launch->partials && launch->tickets ? launch->partials_size : 0,
        launch->terms_size, launch->squares ? launch->squares_size : 0,
        launch->clusters};
    return f;
}

/* What is moved in 16 bytes begins at such; else the launch has failed. Returns whether it has not.
 */
static inline bool tec_cuda_need_aligned(bool aligned, struct tec_cuda_launch *launch)
{
    if (!aligned && launch->error == cudaSuccess)
        launch->error = cudaErrorInvalidValue;
    return launch->error == cudaSuccess;
}

/* Whether a device of this compute capability multiplies by warp groups. */
bool tec_cuda_groups(int capability);
/* A kernel that has as many threads and registers as any whose splits may be a cluster; its shared
 * memory is the launch's. Not called where there are no such products. */
const void *tec_cuda_cluster_kernel(void);

#define KERNEL(name, args) \
    void tec_cuda_##name(const struct tec_##args##_args *a, struct tec_cuda_launch *launch);
#include "kernels/kernels.def"
#undef KERNEL

#ifdef __cplusplus
}
#endif

#endif
