/* mass.c - the NEON attention_mass kernels: the shared body over vectors of 4 floats.
 *
 * kernels/vector/mass.inc has the algorithm: the walk over key blocks is that of attention, with
 * sums over ranges of keys in place of values. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/mass.inc"
#endif
