/* avx2.h - the kernels that this tier overrides. */
#ifndef TEC_KERNELS_AVX2_AVX2_H
#define TEC_KERNELS_AVX2_AVX2_H

#include "kernels/kernels.h"

void tec_gemm_f32_avx2(const struct tec_gemm_args *a, struct tec_part part);
void tec_gemm_bf16_avx2(const struct tec_gemm_args *a, struct tec_part part);
void tec_embed_f32_avx2(const struct tec_embed_args *a, struct tec_part part);
void tec_embed_bf16_avx2(const struct tec_embed_args *a, struct tec_part part);
void tec_next_token_avx2(const struct tec_next_token_args *a, struct tec_part part);

#endif
