/* gemm_int8_choice.h - which kernel and which tile a product with 8-bit weights takes: plain C, as
 * gemm_choice.h. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H
#define TEC_KERNELS_CUDA_GEMM_INT8_CHOICE_H

#include "kernels/args.h"
#include "kernels/cuda/gemm_choice.h"

/* Digits are written first where blocks that make them would do it longer than another kernel takes
 * to start: with more than 64 rows, or with more than 32 that more blocks than processors have. */
enum { INT8_FEW = 32, INT8_MANY = 64 };
static inline struct digits_choice int8_choose(const struct tec_gemm_args *a,
                                               const struct tec_cuda_facts *f)
{
    struct digits_choice c = {{a->k, TEC_INT8_GROUP, a->digits == 1 ? 1 : 2}, 0};
    int blocks = gemm_tile_count(GEMM_int8_few_mma_one_64, a->max_rows, a->n / 16);
    if (a->max_rows > INT8_MANY || (a->max_rows > INT8_FEW && blocks > f->processors))
        c.part = digits_part(&c.form, GEMM_int8_many_mma_two_128, f);
    return c;
}

/* --- few rows --------------------------------------------------------------------------------- */

/* All rows, for a finish of so many panels; pairs: it takes them in pairs. */
static inline struct gemm_start int8_few_start(const struct digits_choice *c, int rows, int places,
                                               bool pairs)
{
    const enum gemm_tile_id one[] = {pairs ? GEMM_int8_few_mma_one_8_pairs
                                           : GEMM_int8_few_mma_one_8,
                                     GEMM_int8_few_mma_one_16, GEMM_int8_few_mma_one_32,
                                     GEMM_int8_few_mma_one_64},
                            two[] = {pairs ? GEMM_int8_few_mma_two_8_pairs
                                           : GEMM_int8_few_mma_two_8,
                                     GEMM_int8_few_mma_two_16, GEMM_int8_few_mma_two_32,
                                     GEMM_int8_few_mma_two_64};
    const enum gemm_tile_id *of = c->form.digits == 1 ? one : two;
    int i = 0;
    while (i < 3 && rows > gemm_tiles[of[i]].rows)
        i++;
    return gemm_start_of(of[i], rows, places);
}

/* --- many rows -------------------------------------------------------------------------------- */

/* What the tiles of a multiprocessor take, which follow one another, or share it, which is the
 * same: their multiplies, and what comes from the L2 for them, in about the proportion that a 4090
 * has. An estimate: nothing was measured. */
static inline long long int8_many_mma_cost(enum gemm_tile_id id, int rows, int places,
                                           const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    int each = t->columns * t->rows * t->terms / 2048 + (t->columns + t->rows * t->terms) / 32;
    return (long long)ceil_div(gemm_tile_count(id, rows, places), f->processors) * each;
}

static inline struct gemm_start int8_many_mma_start(const struct digits_choice *c, int rows,
                                                    int places, const struct tec_cuda_facts *f)
{
    static const enum gemm_tile_id one[] = {GEMM_int8_many_mma_one_128, GEMM_int8_many_mma_one_64,
                                            GEMM_int8_many_mma_one_narrow},
                                   two[] = {GEMM_int8_many_mma_two_128, GEMM_int8_many_mma_two_64,
                                            GEMM_int8_many_mma_two_narrow};
    const enum gemm_tile_id *of = c->form.digits == 1 ? one : two;
    int best = 0;
    for (int i = 1; i < 3; i++)
        if (int8_many_mma_cost(of[i], rows, places, f) <
            int8_many_mma_cost(of[best], rows, places, f))
            best = i;
    return gemm_start_of(of[best], rows, places);
}

/* Clocks of so many tiles: those of a multiprocessor follow one another, or share it, where one
 * that is alone takes as long as those that share. A row of a tile takes INT8_MANY_GROUPS_FINISH
 * when it is stored.
 */
enum { INT8_MANY_GROUPS_FINISH = 45 };
static inline long long int8_many_groups_cost(enum gemm_tile_id id, int rows, int places, int k,
                                              const struct tec_cuda_facts *f)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    int tiles = gemm_tile_count(id, rows, places);
    long long each = ceil_div(tiles, f->processors);
    long long waves = ceil_div(tiles, f->processors * t->resident);
    return waves * t->clocks * ceil_div(k, t->k) + each * t->rows * INT8_MANY_GROUPS_FINISH;
}

/* Blocks: one for each tile where two share a multiprocessor; else as many as run at the same time,
 * which take one tile after the other. */
static inline struct gemm_start int8_many_groups_start(const struct digits_choice *c, int rows,
                                                       int places, const struct tec_cuda_facts *f)
{
    int k = c->form.k;
    bool one = c->form.digits == 1;
    enum gemm_tile_id small = one ? GEMM_int8_many_groups_one_64 : GEMM_int8_many_groups_two_64;
    enum gemm_tile_id large = one ? GEMM_int8_many_groups_one_128 : GEMM_int8_many_groups_two_128;
    bool less = int8_many_groups_cost(small, rows, places, k, f) <
                int8_many_groups_cost(large, rows, places, k, f);
    enum gemm_tile_id id = less ? small : large;
    int tiles = gemm_tile_count(id, rows, places);
    bool each = gemm_tiles[id].resident > 1 || tiles < f->processors;
    return (struct gemm_start){id, each ? tiles : f->processors, 1};
}

/* `rows` rows whose digits are there, for a finish of so many panels. */
static inline struct gemm_start int8_many_start(const struct digits_choice *c, int rows, int places,
                                                const struct tec_cuda_facts *f)
{
    return f->groups ? int8_many_groups_start(c, rows, places, f)
                     : int8_many_mma_start(c, rows, places, f);
}

#endif
