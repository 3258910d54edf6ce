/* ref.h - prototypes of the reference tier, so that a definition that drifts does not compile. */
#ifndef TEC_KERNELS_REF_REF_H
#define TEC_KERNELS_REF_REF_H

#include "kernels/kernels.h"

#define KERNEL(name, args) \
    void tec_##name##_ref(const struct tec_##args##_args *a, struct tec_part part);
#include "kernels/kernels.def"
#undef KERNEL

#endif
