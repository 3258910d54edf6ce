/* avx512.h - the kernels that this tier overrides. */
#ifndef TEC_KERNELS_AVX512_AVX512_H
#define TEC_KERNELS_AVX512_AVX512_H

#include "kernels/kernels.h"

void tec_gemm_f32_avx512(const struct tec_gemm_args *a, struct tec_part part);
void tec_gemm_bf16_avx512(const struct tec_gemm_args *a, struct tec_part part);
void tec_next_token_avx512(const struct tec_next_token_args *a, struct tec_part part);

#endif
