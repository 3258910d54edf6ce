/* gemm_int8_choice.h - which tile many rows of 8-bit weights take by warp groups: plain C, beside
 * gemm_choice.h. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H
#define TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H

#include "kernels/cuda/gemm_choice.h"

/* Clocks of so many tiles: those of a multiprocessor follow one another, or share it. A row of a
 * tile takes BYTES_FINISH when it is stored. */
enum { BYTES_FINISH = 45 };
static inline long long bytes_cost(enum gemm_tile_id id, int places, int rows, int k,
                                   const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    long long each = ceil_div(gemm_tile_count(id, rows, places), f->processors);
    return each * t->clocks * ceil_div(k, t->k) / t->resident + each * t->rows * BYTES_FINISH;
}

/* The tile of `rows` rows, many, whose digits are there, for a finish of so many panels. */
static inline enum gemm_tile_id bytes_choose(int places, int rows, int k, int digits,
                                             const struct tec_cuda_facts *f)
{
    enum gemm_tile_id small = digits == 1 ? GEMM_bytes_one_64 : GEMM_bytes_two_64;
    enum gemm_tile_id large = digits == 1 ? GEMM_bytes_one_128 : GEMM_bytes_two_128;
    bool less = bytes_cost(small, places, rows, k, f) < bytes_cost(large, places, rows, k, f);
    return less ? small : large;
}

/* Blocks that take the tiles: one each where two share a multiprocessor; else as many as run at the
 * same time, which take one after the other. */
static inline int bytes_blocks(enum gemm_tile_id id, int places, int rows, int processors)
{
    int tiles = gemm_tile_count(id, rows, places);
    return gemm_tiles[id].resident > 1 || tiles < processors ? tiles : processors;
}

#endif
