/* attention.c - the AVX-512 attention kernels: the shared body over vectors of 16 floats.
 *
 * kernels/vector/attention.inc and scores.inc have the algorithm: tiles of queries walk the keys in
 * blocks, and each score is one chain of fused products, so a query gives the same bytes in any
 * company. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/attention.inc"
#endif
