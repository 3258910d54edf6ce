/* gemm_int4_choice.h - which tile a product with 4-bit weights takes: plain C, as gemm_choice.h. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT4_CHOICE_H
#define TEC_KERNELS_CUDA_GEMM_INT4_CHOICE_H

#include "kernels/cuda/gemm_choice.h"

/* Digits of x in a product with 4-bit weights; digits: as of struct tec_gemm_args. */
static inline struct tec_cuda_digits int4_form(int k, int group, int digits)
{
    return (struct tec_cuda_digits){k, group < k ? group : k, digits == 2 ? 2 : 3};
}

/* Rows whose digits there is room for at once, a multiple of the largest tile's; 0: for none. */
static inline int int4_part(const struct tec_cuda_digits *form, const struct tec_cuda_facts *f)
{
    int rows = gemm_tiles[GEMM_int4_many_mma_128].rows;
    return tec_cuda_digits_room(f->terms_size, form) / rows * rows;
}

/* Whether a product has the digits of its rows written first: from 17 rows on, where all panels
 * have one order of k. Every block of fewer rows makes them itself. */
enum { INT4_FEW = 16 };
static inline bool int4_is_many(int rows, bool orders, int k, int group, int digits,
                                const struct tec_cuda_facts *f)
{
    struct tec_cuda_digits form = int4_form(k, group, digits);
    return rows > INT4_FEW && !orders && int4_part(&form, f) > 0;
}

/* The tile of `rows` rows, many, whose digits are there. Two digits join as whole numbers where a
 * group's sum fits 32 bits: of INT4_WHOLE k at most, |x| <= 127 * 257 units, |nibble - zero| <= 16.
 * A large tile takes almost twice as long as a small one, and weights come for twice the rows. */
enum { INT4_WHOLE = 4096 };
static inline enum gemm_tile_id int4_many_mma_choose(int n, int rows,
                                                     const struct tec_cuda_digits *form,
                                                     const struct tec_cuda_facts *f)
{
    int large = gemm_tile_count(GEMM_int4_many_mma_128, rows, n / 16);
    int small = gemm_tile_count(GEMM_int4_many_mma_64, rows, n / 16);
    if (form->digits > 2 || form->group > INT4_WHOLE)
        return GEMM_int4_many_mma_64_floats;
    return LARGE_WAVE * ceil_div(large, f->processors) <=
                   SMALL_WAVE * ceil_div(small, f->processors)
               ? GEMM_int4_many_mma_128
               : GEMM_int4_many_mma_64;
}

/* Groups of more than INT4_SHORT k take blocks of 8 rows at most. Tiles are wide where that leaves
 * no processor idle: what is made of x is for more columns. */
enum { INT4_SHORT = 128 };
static inline enum gemm_tile_id int4_few_mma_choose(int n, int rows, int k, int group,
                                                    const struct tec_cuda_facts *f)
{
    bool longer = group > INT4_SHORT && k > INT4_SHORT;
    int i = rows <= 4 ? 0 : rows <= 8 || longer ? 1 : 2;
    static const enum gemm_tile_id wide[] = {GEMM_int4_few_mma_4_wide, GEMM_int4_few_mma_8_wide,
                                             GEMM_int4_few_mma_16_wide},
                                   narrow[] = {GEMM_int4_few_mma_4, GEMM_int4_few_mma_8,
                                               GEMM_int4_few_mma_16};
    return gemm_tile_count(wide[i], rows, n / 16) >= f->processors ? wide[i] : narrow[i];
}

#endif
