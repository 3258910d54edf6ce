/* norm.c - the NEON layernorm, rmsnorm and head_norm kernels: the shared body over vectors of 4
 * floats.
 *
 * Sums are float64 as in the reference, so the results differ from it by the order of the sums
 * only. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/norm.inc"
#endif
