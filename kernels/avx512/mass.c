/* mass.c - the AVX-512 attention_mass kernels: the shared body over vectors of 16 floats.
 *
 * kernels/vector/mass.inc has the algorithm: the walk over key blocks is that of attention, with
 * sums over ranges of keys in place of values. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/mass.inc"
#endif
