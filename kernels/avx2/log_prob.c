/* log_prob.c - the AVX2 log_prob kernel: the shared body over vectors of 8 floats.
 *
 * kernels/vector/log_prob.inc has the algorithm: exponentials in float32, their sum in float64. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/log_prob.inc"
#endif
