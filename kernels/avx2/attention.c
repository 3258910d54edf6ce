/* attention.c - the AVX2 attention kernels: the shared body over vectors of 8 floats.
 *
 * kernels/vector/attention.inc and scores.inc have the algorithm: tiles of queries walk the keys in
 * blocks, and each score is one chain of fused products, so a query gives the same bytes in any
 * company. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/attention.inc"
#endif
