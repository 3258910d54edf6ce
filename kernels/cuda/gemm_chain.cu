/* gemm_chain.cu - products with what stands in front of them and behind them. */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/gemm_then.cuh"

/* Whether a product may begin with this norm: its blocks measure all rows again, so there are to be
 * few; vectors and rows move as quads. */
static bool may_begin(const struct tec_norm_args *norm, const struct tec_gemm_args *a)
{
    bool same = a->x == norm->y && a->ldx == norm->ldy && a->rows == norm->rows &&
                a->max_rows == norm->max_rows && a->k == norm->cols;
    bool quads = norm->cols % QUAD == 0 && floats_aligned(norm->x, norm->ldx) &&
                 floats_aligned(norm->weight, 0) && floats_aligned(norm->bias, 0) &&
                 floats_aligned(norm->fixed_weight, 0) && floats_aligned(norm->fixed_bias, 0);
    return same && quads && a->max_rows <= 64;
}

bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch)
{
    const struct tec_norm_args *norm = chain->norm;
    struct tec_gemm_args a = *chain->gemm;
    if (a.add || (norm && !may_begin(norm, &a)))
        return false;
    if (norm) {
        a.x = norm->x;
        a.ldx = norm->ldx;
    }
    if (chain->gelu)
        return tec_cuda_gemm_then_gelu(&a, norm, chain->gelu, launch);
    if (chain->gated)
        return tec_cuda_gemm_then_gated(&a, norm, chain->gated, launch);
    if (chain->rope)
        return tec_cuda_gemm_then_rope(&a, norm, chain->rope, chain->rope_bf16, launch);
    return norm && tec_cuda_gemm_normed(&a, norm, launch);
}
