/* log_prob.c - the AVX-512 log_prob kernel: the shared body over vectors of 16 floats.
 *
 * kernels/vector/log_prob.inc has the algorithm: exponentials in float32, their sum in float64. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/log_prob.inc"
#endif
