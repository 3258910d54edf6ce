/* map.c - the NEON activations, gated activations, caps and sums: the loops of vector/map.inc over
 * the formulas of vector/exp.inc, 4 floats at a time. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/map.inc"
#endif
