/* rope.c - the AVX2 rope kernels: the shared body over vectors of 8 floats.
 *
 * Products are rounded before they are added, as in the reference, so both give the same bytes. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/rope.inc"
#endif
