/* map.c - the AVX-512 activations, gated activations, caps and sums: the loops of vector/map.inc
 * over the formulas of vector/exp.inc, 16 floats at a time. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/map.inc"
#endif
