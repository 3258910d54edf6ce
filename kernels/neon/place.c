/* place.c - the NEON place_kv kernels: the shared body over vectors of 4 floats.
 *
 * Kept keys are rotated with the products of rope, rounded in the same places, so both store the
 * same bytes. */
#include "kernels/neon/neon.h"

#if defined(__aarch64__)
#include "kernels/neon/vec.h"

#include "kernels/vector/place.inc"
#endif
