/* log_prob.c - the NEON log_prob kernel: the shared body over vectors of 4 floats.
 *
 * kernels/vector/log_prob.inc has the algorithm: exponentials in float32, their sum in float64. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/log_prob.inc"
#endif
