/* gemm_int8_choice.h - which tile a product with 8-bit weights takes: plain C, as gemm_choice.h. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H
#define TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H

#include "kernels/cuda/gemm_choice.h"
#include "kernels/int8.h"

/* Digits of x in a product with 8-bit weights; digits: as of struct tec_gemm_args. */
static inline struct tec_cuda_digits int8_form(int k, int digits)
{
    return (struct tec_cuda_digits){k, TEC_INT8_GROUP, digits == 1 ? 1 : 2};
}

/* Rows whose digits there is room for at once, a multiple of the largest tile's; 0: for none. */
static inline int int8_part(const struct tec_cuda_digits *form, const struct tec_cuda_facts *f)
{
    int rows = gemm_tiles[GEMM_int8_many_mma_two_128].rows;
    return tec_cuda_digits_room(f->terms_size, form) / rows * rows;
}

/* What the tiles of a multiprocessor take, which follow one another, or share it, which is the
 * same: their multiplies, and what comes from the L2 for them, in about the proportion that a 4090
 * has. An estimate: nothing was measured. */
static inline long long int8_many_mma_cost(enum gemm_tile_id id, int places, int rows,
                                           const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    int each = t->columns * t->rows * t->terms / 2048 + (t->columns + t->rows * t->terms) / 32;
    return (long long)ceil_div(gemm_tile_count(id, rows, places), f->processors) * each;
}

/* The tile of `rows` rows, many, whose digits are there, for a finish of so many panels. */
static inline enum gemm_tile_id int8_many_mma_choose(int places, int rows, int digits,
                                                     const struct tec_cuda_facts *f)
{
    static const enum gemm_tile_id one[] = {GEMM_int8_many_mma_one_128, GEMM_int8_many_mma_one_64,
                                            GEMM_int8_many_mma_one_narrow},
                                   two[] = {GEMM_int8_many_mma_two_128, GEMM_int8_many_mma_two_64,
                                            GEMM_int8_many_mma_two_narrow};
    const enum gemm_tile_id *of = digits == 1 ? one : two;
    int best = 0;
    for (int i = 1; i < 3; i++)
        if (int8_many_mma_cost(of[i], places, rows, f) <
            int8_many_mma_cost(of[best], places, rows, f))
            best = i;
    return of[best];
}

/* Whether a product has the digits of its rows written first: where blocks that make them would do
 * it longer than another kernel takes to start, with more than 64 rows, or with more than 32 that
 * more blocks than processors have. */
enum { INT8_FEW = 32, INT8_MANY = 64 };
static inline bool int8_is_many(int n, int k, int rows, int digits, const struct tec_cuda_facts *f)
{
    struct tec_cuda_digits form = int8_form(k, digits);
    bool many = rows > INT8_MANY ||
                (rows > INT8_FEW &&
                 gemm_tile_count(GEMM_int8_few_mma_one_64, rows, n / 16) > f->processors);
    return many && int8_part(&form, f) > 0;
}

/* Where blocks make the digits of their rows; pairs: the finish takes panels in pairs. */
static inline enum gemm_tile_id int8_few_mma_choose(int rows, int digits, bool pairs)
{
    const enum gemm_tile_id one[] = {pairs ? GEMM_int8_few_mma_one_8_pairs
                                           : GEMM_int8_few_mma_one_8,
                                     GEMM_int8_few_mma_one_16, GEMM_int8_few_mma_one_32,
                                     GEMM_int8_few_mma_one_64},
                            two[] = {pairs ? GEMM_int8_few_mma_two_8_pairs
                                           : GEMM_int8_few_mma_two_8,
                                     GEMM_int8_few_mma_two_16, GEMM_int8_few_mma_two_32,
                                     GEMM_int8_few_mma_two_64};
    const enum gemm_tile_id *of = digits == 1 ? one : two;
    int i = 0;
    while (i < 3 && rows > gemm_tiles[of[i]].rows)
        i++;
    return of[i];
}

/* --- many rows by warp groups ----------------------------------------------------------------- */

/* Clocks of so many tiles: those of a multiprocessor follow one another, or share it, where one
 * that is alone takes as long as those that share. A row of a tile takes INT8_MANY_GROUPS_FINISH
 * when it is stored.
 */
enum { INT8_MANY_GROUPS_FINISH = 45 };
static inline long long int8_many_groups_cost(enum gemm_tile_id id, int places, int rows, int k,
                                              const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    int tiles = gemm_tile_count(id, rows, places);
    long long each = ceil_div(tiles, f->processors);
    long long waves = ceil_div(tiles, f->processors * t->resident);
    return waves * t->clocks * ceil_div(k, t->k) + each * t->rows * INT8_MANY_GROUPS_FINISH;
}

/* The tile of `rows` rows, many, whose digits are there, for a finish of so many panels. */
static inline enum gemm_tile_id int8_many_groups_choose(int places, int rows, int k, int digits,
                                                        const struct tec_cuda_facts *f)
{
    enum gemm_tile_id small =
        digits == 1 ? GEMM_int8_many_groups_one_64 : GEMM_int8_many_groups_two_64;
    enum gemm_tile_id large =
        digits == 1 ? GEMM_int8_many_groups_one_128 : GEMM_int8_many_groups_two_128;
    bool less = int8_many_groups_cost(small, places, rows, k, f) <
                int8_many_groups_cost(large, places, rows, k, f);
    return less ? small : large;
}

/* Blocks that take the tiles: one each where two share a multiprocessor; else as many as run at the
 * same time, which take one after the other. */
static inline int int8_many_groups_blocks(enum gemm_tile_id id, int places, int rows,
                                          int processors)
{
    int tiles = gemm_tile_count(id, rows, places);
    return gemm_tiles[id].resident > 1 || tiles < processors ? tiles : processors;
}

#endif
