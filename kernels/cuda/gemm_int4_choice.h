/* gemm_int4_choice.h - which kernel and which tile a product with 4-bit weights takes: plain C, as
 * gemm_choice.h. */
#ifndef TEC_KERNELS_CUDA_GEMM_INT4_CHOICE_H
#define TEC_KERNELS_CUDA_GEMM_INT4_CHOICE_H

#include "kernels/args.h"
#include "kernels/cuda/gemm_choice.h"

/* Digits are written first from 17 rows on, where all panels have one order of k. */
enum { INT4_FEW = 16 };
static inline struct digits_choice int4_choose(const struct tec_gemm_args *a,
                                               const struct tec_cuda_facts *f)
{
    int group = a->group < a->k ? a->group : a->k;
    struct digits_choice c = {{a->k, group, a->digits == 2 ? 2 : 3}, 0};
    if (a->max_rows > INT4_FEW && !(a->order && a->order_of))
        c.part = digits_part(&c.form, GEMM_int4_many_mma_128, f);
    return c;
}

/* All rows. Groups of more than INT4_SHORT k take blocks of 8 rows at most. Tiles are wide where
 * that leaves no processor idle: what is made of x is for more columns. */
enum { INT4_SHORT = 128 };
static inline struct gemm_start int4_few_start(const struct digits_choice *c, int rows, int places,
                                               const struct tec_cuda_facts *f)
{
    static const enum gemm_tile_id wide[] = {GEMM_int4_few_mma_4_wide, GEMM_int4_few_mma_8_wide,
                                             GEMM_int4_few_mma_16_wide},
                                   narrow[] = {GEMM_int4_few_mma_4, GEMM_int4_few_mma_8,
                                               GEMM_int4_few_mma_16};
    int i = rows <= 4 ? 0 : rows <= 8 || c->form.group > INT4_SHORT ? 1 : 2;
    bool fills = gemm_tile_count(wide[i], rows, places) >= f->processors;
    return gemm_start_of(fills ? wide[i] : narrow[i], rows, places);
}

/* `rows` rows whose digits are there. Two digits join as whole numbers where a group's sum fits 32
 * bits: of INT4_WHOLE k at most, |x| <= 127 * 257 units, |nibble - zero| <= 16. A large tile takes
 * almost twice as long as a small one, and weights come for twice the rows. */
enum { INT4_WHOLE = 4096 };
static inline struct gemm_start int4_many_start(const struct digits_choice *c, int rows, int places,
                                                const struct tec_cuda_facts *f)
{
    int large = gemm_tile_count(GEMM_int4_many_mma_128, rows, places);
    int small = gemm_tile_count(GEMM_int4_many_mma_64, rows, places);
    bool less =
        LARGE_WAVE * ceil_div(large, f->processors) <= SMALL_WAVE * ceil_div(small, f->processors);
    enum gemm_tile_id id = less ? GEMM_int4_many_mma_128 : GEMM_int4_many_mma_64;
    if (c->form.digits > 2 || c->form.group > INT4_WHOLE)
        id = GEMM_int4_many_mma_64_floats;
    return gemm_start_of(id, rows, places);
}

#endif
