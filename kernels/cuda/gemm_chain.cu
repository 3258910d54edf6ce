/* gemm_chain.cu - products with what stands in front of them and behind them. */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/gemm_then.cuh"

typedef bool start_fn(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                      const void *then, struct tec_cuda_launch *launch);

/* Products of bf16 weights, and of 8-bit ones: what they begin with alone; what is behind them. */
#define STARTS(of)                                                                                 \
    static bool of##_then_nothing(const struct tec_gemm_args *a, const struct tec_norm_args *norm, \
                                  const void *, struct tec_cuda_launch *launch)                    \
    {                                                                                              \
        return norm && tec_cuda_##of##_normed(a, norm, launch);                                    \
    }
STARTS(gemm)
STARTS(int8)

#define START(of, kernel, args)                                                        \
    static bool of##_then_##kernel(const struct tec_gemm_args *a,                      \
                                   const struct tec_norm_args *norm, const void *then, \
                                   struct tec_cuda_launch *launch)                     \
    {                                                                                  \
        return tec_cuda_##of##_then_##kernel(                                          \
            a, norm, static_cast<const struct tec_##args##_args *>(then), launch);     \
    }
#define THEN(kernel, args, input) START(gemm, kernel, args) START(int8, kernel, args)
#include "kernels/cuda/chains.def"
#undef THEN

/* In the order of enum tec_cuda_then. */
static start_fn *const gemm_starts[TEC_CUDA_THEN_COUNT] = {
    gemm_then_nothing,
#define THEN(kernel, args, input) gemm_then_##kernel,
#include "kernels/cuda/chains.def"
#undef THEN
};
static start_fn *const int8_starts[TEC_CUDA_THEN_COUNT] = {
    int8_then_nothing,
#define THEN(kernel, args, input) int8_then_##kernel,
#include "kernels/cuda/chains.def"
#undef THEN
};

bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch)
{
    const struct tec_norm_args *norm = chain->norm;
    struct tec_gemm_args a = *chain->gemm;
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    if (chain->leaves) {
        (chain->int8 ? tec_cuda_int8_leaving : tec_cuda_gemm_leaving)(&a, launch);
        return true;
    }
    if (a.add || (norm && !chain_begins(chain, chain->left, &facts)))
        return false;
    if (norm) {
        a.x = norm->x;
        a.ldx = norm->ldx;
    }
    launch->left = chain->left;
    return (chain->int8 ? int8_starts : gemm_starts)[chain->then](&a, norm, chain->args, launch);
}
