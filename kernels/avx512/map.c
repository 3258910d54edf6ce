/* map.c - the AVX-512 activations, gated activations, caps and sums: the shared body over vectors
 * of 16 floats. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/map.inc"
#endif
