/* norm.c - the AVX2 layernorm, rmsnorm and head_norm kernels: the shared body over vectors of 8
 * floats.
 *
 * Sums are float64 as in the reference, so the results differ from it by the order of the sums
 * only. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/norm.inc"
#endif
