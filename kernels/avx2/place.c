/* place.c - the AVX2 place_kv kernels: the shared body over vectors of 8 floats.
 *
 * Kept keys are rotated with the products of rope, rounded in the same places, so both store the
 * same bytes. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/vec.h"

#include "kernels/vector/place.inc"
#endif
