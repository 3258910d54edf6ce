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

bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch)
{
    const struct tec_norm_args *norm = chain->norm;
    struct tec_gemm_args a = *chain->gemm;
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    if (chain->leaves) {
        tec_cuda_gemm_leaving(&a, launch);
        return true;
    }
    if (a.add || (norm && !chain_begins(norm, &a, chain->left, &facts)))
        return false;
    if (norm) {
        a.x = norm->x;
        a.ldx = norm->ldx;
    }
    launch->left = chain->left;
    return starts[chain->then](&a, norm, chain->args, launch);
}
