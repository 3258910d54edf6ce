/* avx512.h - prototypes of what this tier may override. */
#ifndef TEC_KERNELS_AVX512_AVX512_H
#define TEC_KERNELS_AVX512_AVX512_H

#include "kernels/kernels.h"

#define KERNEL(name, args) \
    void tec_##name##_avx512(const struct tec_##args##_args *a, struct tec_part part);
#include "kernels/kernels.def"
#undef KERNEL

/* gemm_bf16 and gemm_int8 where there is a tile unit (AMX). */
void tec_tiles_gemm_bf16_avx512(const struct tec_gemm_args *a, struct tec_part part);
void tec_tiles_gemm_int8_avx512(const struct tec_gemm_args *a, struct tec_part part);
/* Whether there is one with products of bf16 and of bytes, as all have that there are, and the
 * system lets this process use it: asks the system for it, once for all threads. */
bool tec_tiles_permitted(void);

/* gemm_bf16 where there are dot products of bf16 pairs (AVX512-BF16). */
void tec_pairs_gemm_bf16_avx512(const struct tec_gemm_args *a, struct tec_part part);
/* Attention that may be in whole numbers, where there are their dot products (VNNI). */
void tec_whole_attention_f32_avx512(const struct tec_attention_args *a, struct tec_part part);
void tec_whole_attention_bf16_avx512(const struct tec_attention_args *a, struct tec_part part);

/* Whether this processor has them, and is of a maker whose processors do more products with them
 * than with float32: AMD's, twice as many; Intel's do half as many. Never timed here: bytes must
 * not depend on a clock. */
bool tec_pairs_pay(void);

#endif
