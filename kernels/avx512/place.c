/* place.c - the AVX-512 place_kv kernels: the shared body over vectors of 16 floats.
 *
 * Kept keys are rotated with the products of rope, rounded in the same places, so both store the
 * same bytes. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/vec.h"

#include "kernels/vector/place.inc"
#endif
