/* chain.h - commands in a row that one kernel does together: a product with what stands directly in
 * front of it and behind it. Bytes are those of the commands one by one. */
#ifndef TEC_KERNELS_CUDA_CHAIN_H
#define TEC_KERNELS_CUDA_CHAIN_H

#include "kernels/cuda/chain_rules.h"
#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Start it; false: this one is not done together, and nothing was started. */
bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch);

#ifdef __cplusplus
}
#endif

#endif
