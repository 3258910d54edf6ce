/* chain.h - commands in a row that one kernel does together: a product with what stands directly in
 * front of it and behind it. Bytes are those of the commands one by one. */
#ifndef TEC_KERNELS_CUDA_CHAIN_H
#define TEC_KERNELS_CUDA_CHAIN_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tec_cuda_then {
    TEC_CUDA_THEN_NOTHING,
#define THEN(kernel, args, input) TEC_CUDA_THEN_##kernel,
#include "kernels/cuda/chains.def"
#undef THEN
    TEC_CUDA_THEN_COUNT
};

/* gemm_bf16 of norm's output, then one of chains.def. What lies between them is not written. */
struct tec_cuda_chain {
    const struct tec_norm_args *norm; /* rmsnorm, of few rows; NULL = none */
    const struct tec_gemm_args *gemm;
    enum tec_cuda_then then;
    const void *args; /* of what is behind */
};

/* The most rows of a product that begins with its norm. */
int tec_cuda_norm_rows(const struct tec_cuda_launch *launch);

/* Whether a product of so many rows goes together with rope_bf16 behind it. */
bool tec_cuda_rope_fits(int rows, const struct tec_cuda_launch *launch);

/* Start it; false: this one is not done together, and nothing was started. */
bool tec_cuda_gemm_chain(const struct tec_cuda_chain *chain, struct tec_cuda_launch *launch);

#ifdef __cplusplus
}
#endif

#endif
