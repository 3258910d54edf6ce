/* gemm_chain.cu - products with what stands in front of them and behind them. */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/gemm_then.cuh"

typedef bool start_fn(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                      const void *then, struct tec_cuda_launch *launch);

static bool then_nothing(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                         const void *then, struct tec_cuda_launch *launch)
{
    (void)then;
    return norm && tec_cuda_gemm_normed(a, norm, launch);
}

#define THEN(kernel, args, input)                                                              \
    static bool then_##kernel(const struct tec_gemm_args *a, const struct tec_norm_args *norm, \
                              const void *then, struct tec_cuda_launch *launch)                \
    {                                                                                          \
        return tec_cuda_gemm_then_##kernel(                                                    \
            a, norm, static_cast<const struct tec_##args##_args *>(then), launch);             \
    }
#include "kernels/cuda/chains.def"
#undef THEN

/* In the order of enum tec_cuda_then. */
static start_fn *const starts[TEC_CUDA_THEN_COUNT] = {
    then_nothing,
#define THEN(kernel, args, input) then_##kernel,
#include "kernels/cuda/chains.def"
#undef THEN
};

/* The blocks of a product measure all rows again, which by warp groups takes longer than a norm of
 * its own where there are many: with 51 rows on an H100. */
int tec_cuda_norm_rows(const struct tec_cuda_launch *launch)
{
    return launch->groups ? 16 : 64;
}

/* Whether a product may begin with this norm, of at most `most` rows; vectors and rows move as
 * quads. */
static bool may_begin(const struct tec_norm_args *norm, const struct tec_gemm_args *a, int most)
{
    bool same = a->x == norm->y && a->ldx == norm->ldy && a->rows == norm->rows &&
                a->max_rows == norm->max_rows && a->k == norm->cols;
    bool quads = norm->cols % QUAD == 0 && floats_aligned(norm->x, norm->ldx) &&
                 floats_aligned(norm->weight, 0) && floats_aligned(norm->bias, 0) &&
                 floats_aligned(norm->fixed_weight, 0) && floats_aligned(norm->fixed_bias, 0);
    return same && quads && a->max_rows <= most;
}

bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch)
{
    const struct tec_norm_args *norm = chain->norm;
    struct tec_gemm_args a = *chain->gemm;
    if (a.add || (norm && !may_begin(norm, &a, tec_cuda_norm_rows(launch))))
        return false;
    if (norm) {
        a.x = norm->x;
        a.ldx = norm->ldx;
    }
    return starts[chain->then](&a, norm, chain->args, launch);
}
