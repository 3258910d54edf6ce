/* neon.h - prototypes of what this tier may override. */
#ifndef TEC_KERNELS_NEON_NEON_H
#define TEC_KERNELS_NEON_NEON_H

#include "kernels/kernels.h"

#define KERNEL(name, args) \
    void tec_##name##_neon(const struct tec_##args##_args *a, struct tec_part part);
#include "kernels/kernels.def"
#undef KERNEL

/* gemm_int4 and gemm_int8 where the processor multiplies bytes by dot products. */
void tec_gemm_int4_dot_neon(const struct tec_gemm_args *a, struct tec_part part);
void tec_gemm_int8_dot_neon(const struct tec_gemm_args *a, struct tec_part part);
/* The same where it multiplies matrices of bytes. */
void tec_gemm_int4_mm_neon(const struct tec_gemm_args *a, struct tec_part part);
void tec_gemm_int8_mm_neon(const struct tec_gemm_args *a, struct tec_part part);
/* gemm_bf16 where it multiplies matrices of bf16, which x that holds bf16 values takes. */
void tec_gemm_bf16_mm_neon(const struct tec_gemm_args *a, struct tec_part part);

#endif
