/* map.c - the AVX2 activations, gated activations, caps and sums: the shared body over vectors of 8
 * floats. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/map.inc"
#endif
