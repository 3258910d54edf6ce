/* norm.c - the AVX-512 layernorm, rmsnorm and head_norm kernels: the shared body over vectors of 16
 * floats.
 *
 * Sums are float64 as in the reference, so the results differ from it by the order of the sums
 * only. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/norm.inc"
#endif
