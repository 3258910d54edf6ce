/* chain_ask.h - what a product asks of its tiles, alone or with what stands around it; plain C, for
 * the model of kernels (kernels/grids.h) and for what it has in common with the launchers. */
#ifndef TEC_KERNELS_CUDA_CHAIN_ASK_H
#define TEC_KERNELS_CUDA_CHAIN_ASK_H

#include "kernels/cuda/chain_rules.h"

static inline struct gemm_ask chain_plain_ask(const struct tec_gemm_args *a, bool norm)
{
    return (struct gemm_ask){.n = a->n,
                             .k = a->k,
                             .rows = a->max_rows,
                             .places = a->n / 16,
                             .few = true,
                             .wide = true,
                             .norm = norm,
                             .rounded = a->rounded != 0};
}

/* Whether what is behind the product goes along, and what its tiles then are asked for. With a
 * norm, x of `a` is that of the norm. */
static inline bool chain_ask_behind(const struct tec_cuda_chain *chain,
                                    const struct tec_gemm_args *a,
                                    const struct tec_cuda_facts *facts, struct gemm_ask *ask)
{
    *ask = chain_plain_ask(a, chain->norm != NULL);
    ask->few = ask->pairs = true;
    if (chain->then == TEC_CUDA_THEN_NOTHING) {
        ask->pairs = false;
        return chain->norm && chain_apart(a, a->y, a->ldy);
    }
    if (chain->then == TEC_CUDA_THEN_gelu_mul || chain->then == TEC_CUDA_THEN_silu_mul) {
        ask->places = 2 * gated_pairs(chain->args);
        return gated_goes_along(a, chain->args);
    }
    if (chain->then == TEC_CUDA_THEN_rope_bf16) {
        ask->places = 2 * rope_pairs(chain->args);
        ask->wide = false;
        return rope_goes_along(a, chain->args) &&
               (chain->int8 ? chain_rope_fits_bytes(a, facts)
                            : chain_rope_fits(a, chain->args, facts));
    }
    ask->few = ask->pairs = false;
    return chain->then == TEC_CUDA_THEN_rope_f32 ? heads_go_along(a, chain->norm, chain->args)
                                                 : gelu_goes_along(a, chain->norm, chain->args);
}

/* Whether the commands of a chain are done together, but for a tile that fits; the ask. */
static inline bool chain_ask(const struct tec_cuda_chain *chain, const struct tec_cuda_facts *facts,
                             struct gemm_ask *ask)
{
    struct tec_gemm_args a = *chain->gemm;
    if (chain->leaves) {
        *ask = chain_plain_ask(&a, false);
        return true;
    }
    if (a.add || (chain->norm && !chain_begins(chain, chain->left, facts)))
        return false;
    if (chain->norm) {
        a.x = chain->norm->x;
        a.ldx = chain->norm->ldx;
    }
    return chain_ask_behind(chain, &a, facts, ask);
}

#endif
