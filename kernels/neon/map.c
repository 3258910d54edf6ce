/* map.c - the NEON activations, gated activations, caps and sums: the shared body over vectors of 4
 * floats. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/map.inc"
#endif
