/* gemm_then.cuh - a product with the kernels in front of it and behind it as one; each kind of
 * them in a file. */
#pragma once

#include "kernels/cuda/chain_rules.h"
#include "kernels/cuda/gemm_finish_terms.cuh"
#include "kernels/cuda/gemm_groups_kernel.cuh"
#include "kernels/cuda/row.cuh"

/* Start all of it; false: they are not done together, and nothing was started. With a norm, a->x
 * and a->ldx are those of the norm; NULL = none. tec_cuda_int8_*: of 8-bit weights. */
bool tec_cuda_gemm_normed(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          struct tec_cuda_launch *launch);
bool tec_cuda_int8_normed(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          struct tec_cuda_launch *launch);
#define THEN(kernel, args, input)                                              \
    bool tec_cuda_gemm_then_##kernel(                                          \
        const struct tec_gemm_args *a, const struct tec_norm_args *norm,       \
        const struct tec_##args##_args *then, struct tec_cuda_launch *launch); \
    bool tec_cuda_int8_then_##kernel(                                          \
        const struct tec_gemm_args *a, const struct tec_norm_args *norm,       \
        const struct tec_##args##_args *then, struct tec_cuda_launch *launch);
#include "kernels/cuda/chains.def"
#undef THEN
/* A product of few rows, which leaves the sums of squares of its y (launch->squares). */
void tec_cuda_gemm_leaving(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);
void tec_cuda_int8_leaving(const struct tec_gemm_args *a, struct tec_cuda_launch *launch);

/* What the tiles are asked for. */
template <bool FEW, class Finish>
static struct gemm_ask ask_of(const struct tec_gemm_args *a, bool norm, const Finish &finish)
{
    return {a->n, a->k,         a->max_rows, finish.places(), Finish::PAIRS,
            FEW,  Finish::WIDE, norm,        a->rounded != 0};
}

/* Whether x and weights can be copied in 16 bytes; else the launch has failed. */
static inline bool moves_as_quads(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    return tec_cuda_need_aligned(floats_aligned(a->x, a->ldx) && (uintptr_t)a->w % 16 == 0, launch);
}

/* With tiles of 8 to 32 rows, and perhaps a norm, where FEW. */
template <bool FEW, class Finish>
static bool start_product(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          const Finish &finish, struct tec_cuda_launch *launch)
{
    struct gemm_ask ask = ask_of<FEW>(a, norm != NULL, finish);
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct gemm_choice choice = gemm_choose(&ask, &facts);
    if (!moves_as_quads(a, launch))
        return true;
    if (launch->groups) {
        struct group_product<Finish> product = {
            {a, finish, choice.split, launch},
            {
                {}, norm != NULL, launch->left ? launch->squares : NULL
            }
        };
        if (norm)
            product.front.a = *norm;
        return product.template start_chosen<FEW>(choice, ask);
    }
    if constexpr (FEW) {
        struct product<Finish, true> product = {
            a, finish, choice.split, launch, {},
        };
        if (norm) {
            product.norm.a = *norm;
            product.norm.left = launch->left ? launch->squares : NULL;
            return product.template start_chosen<FEW, rows_64, rows_128>(choice);
        }
    }
    struct product<Finish> product = {
        a, finish, choice.split, launch
    };
    if (a->rounded)
        product.template start_chosen<FEW, rounded_rows_64, rounded_rows_128>(choice);
    else
        product.template start_chosen<FEW, rows_64, rows_128>(choice);
    return true;
}

template <class Then>
static bool start_pairs(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                        const Then &then, struct tec_cuda_launch *launch)
{
    return start_product<true>(a, norm, pair_finish<Then>{*a, then}, launch);
}

/* Start a chain that only many rows have, without a norm. */
template <class Then>
static bool start_singles(const struct tec_gemm_args *a, const Then &then,
                          struct tec_cuda_launch *launch)
{
    return start_product<false>(a, NULL, single_finish<Then>{*a, then}, launch);
}

/* Start a product of many rows by warp groups whose values go on as terms (chain_terms.h). */
template <class Finish>
static bool start_leaving_terms(const struct tec_gemm_args *a, const Finish &finish,
                                struct tec_cuda_launch *launch)
{
    struct gemm_ask ask = ask_of<true>(a, false, finish);
    if (!moves_as_quads(a, launch))
        return true;
    struct group_product<Finish> product = {
        {a, finish, split_of(a->n, a->k, gemm_tiles[GEMM_groups_64].columns), launch},
        {
        }
    };
    return ask.rounded ? product.template start_many<1>(ask) : product.template start_many<2>(ask);
}
