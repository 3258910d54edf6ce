/* gemm_chain.cu - products with what stands in front of them and behind them. */
#include "kernels/cuda/chain.h"
#include "kernels/cuda/gemm_then.cuh"

bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch)
{
    if (chain->norm || chain->gemm->add)
        return false;
    if (chain->gelu)
        return tec_cuda_gemm_then_gelu(chain->gemm, chain->gelu, launch);
    if (chain->gated)
        return tec_cuda_gemm_then_gated(chain->gemm, chain->gated, launch);
    return chain->rope &&
           tec_cuda_gemm_then_rope(chain->gemm, chain->rope, chain->rope_bf16, launch);
}
