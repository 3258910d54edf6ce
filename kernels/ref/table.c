/* table.c - the reference tier implements every kernel: a missing one is a link error. */
#include "kernels/kernels.h"
#include "kernels/ref/ref.h"

void tec_kernels_add_ref(struct tec_kernels *kernels)
{
    kernels->layout = TEC_MATRIX_ROWS;
#define KERNEL(name, args) kernels->name = tec_##name##_ref;
#include "kernels/kernels.def"
#undef KERNEL
}
