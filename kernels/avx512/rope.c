/* rope.c - the AVX-512 rope kernels: the shared body over vectors of 16 floats.
 *
 * Products are rounded before they are added, as in the reference, so both give the same bytes. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/rope.inc"
#endif
