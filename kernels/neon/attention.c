/* attention.c - the NEON attention kernels: the shared body over vectors of 4 floats.
 *
 * kernels/vector/attention.inc and scores.inc have the algorithm: tiles of queries walk the keys in
 * blocks, and each score is one chain of fused products, so a query gives the same bytes in any
 * company. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/attention.inc"
#endif
