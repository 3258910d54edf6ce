/* table.c - what this tier overrides. */
#include "kernels/kernels.h"

void tec_kernels_add_avx512(struct tec_kernels *kernels)
{
    (void)kernels;
}
