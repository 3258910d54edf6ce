/* mass.c - the AVX2 attention_mass kernels: the shared body over vectors of 8 floats.
 *
 * kernels/vector/mass.inc has the algorithm: the walk over key blocks is that of attention, with
 * sums over ranges of keys in place of values. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/mass.inc"
#endif
