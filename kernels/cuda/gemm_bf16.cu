/* gemm_bf16.cu - y (+)= gate * (x W^T + bias) on tensor cores, W bf16, x float32 in two terms. */
#include "kernels/cuda/gemm_leaving.cuh"
#include "kernels/cuda/gemm_then.cuh"

/* Code for sm_90a runs on 9.0 alone. */
bool tec_cuda_groups(int capability)
{
#if !defined(__CUDACC__) || defined(TECTUM_CUDA_90A)
    return capability == 90;
#else
    return (void)capability, false;
#endif
}

const void *tec_cuda_cluster_kernel(void)
{
    return (const void *)gemm_groups_kernel<groups_64, single_finish<store_leaving>>;
}

void tec_cuda_gemm_bf16(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    start_product<true>(a, NULL, leaving_finish(a, NULL), launch);
}

void tec_cuda_gemm_leaving(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    start_product<true>(a, NULL, leaving_finish(a, launch->squares), launch);
}

bool tec_cuda_gemm_normed(const struct tec_gemm_args *a, const struct tec_norm_args *norm,
                          struct tec_cuda_launch *launch)
{
    return chain_apart(a, a->y, a->ldy) &&
           start_product<true>(a, norm, leaving_finish(a, NULL), launch);
}
