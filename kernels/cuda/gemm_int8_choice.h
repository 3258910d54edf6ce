/* gemm_int8_choice.h - which tile a product with 8-bit weights takes: plain C, as gemm_choice.h. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H
#define TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H

#include "kernels/cuda/gemm_choice.h"
#include "kernels/int8.h"

/* Digits of x in a product with 8-bit weights; digits: as of struct tec_gemm_args. */
static inline struct tec_cuda_digits digits_form(int k, int digits)
{
    return (struct tec_cuda_digits){k, TEC_INT8_GROUP, digits == 1 ? 1 : 2};
}

/* Rows whose digits there is room for at once, a multiple of the largest tile's; 0: for none. */
static inline int digits_part(const struct tec_cuda_digits *form, const struct tec_cuda_facts *f)
{
    int rows = gemm_tiles[GEMM_digits_two_128].rows;
    return tec_cuda_digits_room(f->terms_size, form) / rows * rows;
}

/* What the tiles of a multiprocessor take, which follow one another, or share it, which is the
 * same: their multiplies, and what comes from the L2 for them, in about the proportion that a 4090
 * has. An estimate: nothing was measured. */
static inline long long digits_cost(enum gemm_tile_id id, int places, int rows,
                                    const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    int each = t->columns * t->rows * t->terms / 2048 + (t->columns + t->rows * t->terms) / 32;
    return (long long)ceil_div(gemm_tile_count(id, rows, places), f->processors) * each;
}

/* The tile of `rows` rows, many, whose digits are there, for a finish of so many panels. */
static inline enum gemm_tile_id digits_choose(int places, int rows, int digits,
                                              const struct tec_cuda_facts *f)
{
    static const enum gemm_tile_id one[] = {GEMM_digits_one_128, GEMM_digits_one_64,
                                            GEMM_digits_one_small},
                                   two[] = {GEMM_digits_two_128, GEMM_digits_two_64,
                                            GEMM_digits_two_small};
    const enum gemm_tile_id *of = digits == 1 ? one : two;
    int best = 0;
    for (int i = 1; i < 3; i++)
        if (digits_cost(of[i], places, rows, f) < digits_cost(of[best], places, rows, f))
            best = i;
    return of[best];
}

/* Whether a product has the digits of its rows written first: where blocks that make them would do
 * it longer than another kernel takes to start, with more than 64 rows, or with more than 32 that
 * more blocks than processors have. */
enum { DIGITS_FEW = 32, DIGITS_MANY = 64 };
static inline bool digits_first(int n, int k, int rows, int digits, const struct tec_cuda_facts *f)
{
    struct tec_cuda_digits form = digits_form(k, digits);
    bool many =
        rows > DIGITS_MANY ||
        (rows > DIGITS_FEW && gemm_tile_count(GEMM_int8_one_64, rows, n / 16) > f->processors);
    return many && digits_part(&form, f) > 0;
}

/* Where blocks make the digits of their rows; pairs: the finish takes panels in pairs. */
static inline enum gemm_tile_id int8_choose(int rows, int digits, bool pairs)
{
    const enum gemm_tile_id one[] = {pairs ? GEMM_int8_one_8_pairs : GEMM_int8_one_8,
                                     GEMM_int8_one_16, GEMM_int8_one_32, GEMM_int8_one_64},
                            two[] = {pairs ? GEMM_int8_rows_8_pairs : GEMM_int8_rows_8,
                                     GEMM_int8_rows_16, GEMM_int8_rows_32, GEMM_int8_rows_64};
    const enum gemm_tile_id *of = digits == 1 ? one : two;
    int i = 0;
    while (i < 3 && rows > gemm_tiles[of[i]].rows)
        i++;
    return of[i];
}

/* --- many rows by warp groups ----------------------------------------------------------------- */

/* Clocks of so many tiles: those of a multiprocessor follow one another, or share it, where one
 * that is alone takes as long as those that share. A row of a tile takes BYTES_FINISH when it is
 * stored.
 */
enum { BYTES_FINISH = 45 };
static inline long long bytes_cost(enum gemm_tile_id id, int places, int rows, int k,
                                   const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    int tiles = gemm_tile_count(id, rows, places);
    long long each = ceil_div(tiles, f->processors);
    long long waves = ceil_div(tiles, f->processors * t->resident);
    return waves * t->clocks * ceil_div(k, t->k) + each * t->rows * BYTES_FINISH;
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
