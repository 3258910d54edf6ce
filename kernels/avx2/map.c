/* map.c - the AVX2 activations, gated activations, caps and sums: the loops of vector/map.inc over
 * the formulas of vector/exp.inc, 8 floats at a time. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/map.inc"
#endif
