/* neon.h - prototypes of what this tier may override. */
#ifndef TEC_KERNELS_NEON_NEON_H
#define TEC_KERNELS_NEON_NEON_H

#include "kernels/kernels.h"

#define KERNEL(name, args) \
    void tec_##name##_neon(const struct tec_##args##_args *a, struct tec_part part);
#include "kernels/kernels.def"
#undef KERNEL

#endif
