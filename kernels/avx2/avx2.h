/* avx2.h - prototypes of what this tier may override. */
#ifndef TEC_KERNELS_AVX2_AVX2_H
#define TEC_KERNELS_AVX2_AVX2_H

#include "kernels/kernels.h"

#define KERNEL(name, args) \
    void tec_##name##_avx2(const struct tec_##args##_args *a, struct tec_part part);
#include "kernels/kernels.def"
#undef KERNEL

/* gemm_int4 and gemm_int8 where the processor has dot products of bytes (AVX-VNNI). */
void tec_vnni_gemm_int4_avx2(const struct tec_gemm_args *a, struct tec_part part);
void tec_vnni_gemm_int8_avx2(const struct tec_gemm_args *a, struct tec_part part);

#endif
