/* row_terms.cuh - where a kernel writes its rows as bf16 terms (row_terms_room.h), as a product by
 * warp groups reads them. */
#pragma once

#include "kernels/cuda/row_terms.h"
#include "kernels/cuda/split_terms.cuh"

/* at NULL: the kernel writes float32. */
struct terms_out {
    unsigned char *at;
    int pieces, terms; /* pieces of TERMS_K columns in a row */

    /* The nearest bf16 of a row's column; that of the rest is TERM_BYTES behind it. */
    __device__ __forceinline__ unsigned char *place(int r, int column) const
    {
        size_t piece =
            ((size_t)(r / TERMS_ROWS) * (size_t)pieces + (size_t)(column / TERMS_K)) * PIECES +
            (size_t)(r % TERMS_ROWS / 8);
        return at + piece * (size_t)(terms * TERM_BYTES) +
               (column % TERMS_K / 8 * 128 + r % 8 * 16 + column % 8 * 2);
    }
    /* A column and the next, of which the first is even. */
    __device__ __forceinline__ void pair(int r, int column, float2 v) const
    {
        unsigned rest, high = split_terms(v, &rest);
        unsigned char *to = place(r, column);
        *reinterpret_cast<unsigned *>(to) = high;
        if (terms == 2)
            *reinterpret_cast<unsigned *>(to + TERM_BYTES) = rest;
    }
    /* Four columns, of which the first is a multiple of four. */
    __device__ __forceinline__ void quad(int r, int column, float2 low, float2 up) const
    {
        uint2 high, rest;
        high.x = split_terms(low, &rest.x);
        high.y = split_terms(up, &rest.y);
        unsigned char *to = place(r, column);
        *reinterpret_cast<uint2 *>(to) = high;
        if (terms == 2)
            *reinterpret_cast<uint2 *>(to + TERM_BYTES) = rest;
    }
};

/* For a kernel that makes `of`, which is taken from the launch. */
static inline struct terms_out terms_out_of(struct tec_cuda_launch *launch, const float *of)
{
    struct terms_out out = {NULL, 0, 0};
    if (launch->leave.of == of && of && !launch->leave.digits) {
        out = {launch->leave.at, ceil_div(launch->leave.k, (int)TERMS_K), launch->leave.terms};
        launch->leave.of = NULL;
    }
    return out;
}
