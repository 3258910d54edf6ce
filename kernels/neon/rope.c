/* rope.c - the NEON rope kernels: the shared body over vectors of 4 floats.
 *
 * Products are rounded before they are added, as in the reference, so both give the same bytes. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/rope.inc"
#endif
