/* chain.h - commands in a row that one kernel does together: a product with what stands directly in
 * front of it and behind it. Bytes are those of the commands one by one. */
#ifndef TEC_KERNELS_CUDA_CHAIN_H
#define TEC_KERNELS_CUDA_CHAIN_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gemm_bf16 of norm's output, then one of three. What lies between them is not written. */
struct tec_cuda_chain {
    const struct tec_norm_args *norm; /* rmsnorm, of few rows; NULL = none */
    const struct tec_gemm_args *gemm;
    const struct tec_map_args *gelu; /* at most one of these three; NULL = none */
    const struct tec_gated_args *gated;
    const struct tec_rope_args *rope;
    bool rope_bf16; /* which of the two */
};

/* Start it; false: this one is not done together, and nothing was started. */
bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch);

#ifdef __cplusplus
}
#endif

#endif
