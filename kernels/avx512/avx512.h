/* avx512.h - prototypes of what this tier may override. */
#ifndef TEC_KERNELS_AVX512_AVX512_H
#define TEC_KERNELS_AVX512_AVX512_H

#include "kernels/kernels.h"

#define KERNEL(name, args) \
    void tec_##name##_avx512(const struct tec_##args##_args *a, struct tec_part part);
#include "kernels/kernels.def"
#undef KERNEL

#endif
