/* chains.c - commands of a list that are started together. */
#include "kernels/cuda/chain_list.h"
#include "kernels/cuda/gpu.h"

static bool start(const struct tec_cuda_chain *chain, void *launch)
{
    return tec_cuda_gemm_chain(chain, launch);
}

int tec_gpu_start_chain(const struct tec_capture *capture, int at, struct tec_cuda_launch *launch)
{
    return chain_at(capture, at, start, launch);
}
